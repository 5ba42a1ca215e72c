// All limits of the chat in one place, so that a page of history, a room and a visitor have a known size.

export const LIMITS = {
  text: 1000, // UTF-16 units in a message
  name: 32,
  payload: 8 << 10, // bytes in a frame; for a larger one ws closes with 1009
  segment: 250, // messages in a file; two files of a room are kept
  rooms: 200, // rooms with a history; the room that has been silent longest is removed
  page: 100, // messages sent at once, on entering and for each step back
  resume: 200, // missed messages that are sent one by one; with more, the page starts again
  visitors: 100, // connections in a room
  tabs: 10, // connections of one person in a room
  connections: 1000, // in this process
  buffered: 1 << 20, // bytes waiting for a slow reader before it is disconnected
  says: { burst: 8, perSecond: 2 }, // beyond it a message is sent back, to be sent again later
  frames: { burst: 60, perSecond: 20 }, // beyond it the connection is closed
  hello: 10_000, // ms in which a new connection must send its name
  heartbeat: 25_000, // ms between pings; a client that has not answered one by the next is gone
  leaving: 2_000, // ms in which a person may come back, by a reload, without having left
  closing: 3_000, // ms for a closing handshake when the server stops
};
