// The part of the package for both sides of the wire. Knows no server.
export {};
