// Every bound of the chat in one place, so that one page of history, one room and one visitor have a known size.

export const LIMITS = {
  text: 1000, // UTF-16 units of a message
  name: 32,
  payload: 8 << 10, // bytes of a frame; ws closes with 1009 beyond it
  segment: 250, // messages of a file; two files of a room are kept
  rooms: 200, // that have a history; the one that has been silent longest is forgotten
  page: 100, // messages at once: on entering, and for each step back
  resume: 200, // missed messages that are sent one by one; beyond it the page starts anew
  visitors: 100, // connections in a room
  tabs: 10, // connections of one person in a room
  connections: 1000, // in this process
  buffered: 1 << 20, // bytes that a slow reader may leave with us before it is cut off
  says: { burst: 8, perSecond: 2 }, // beyond it a message is sent back, to be tried again
  frames: { burst: 60, perSecond: 20 }, // beyond it the connection is closed
  hello: 10_000, // ms until a new connection must have said who it is
  heartbeat: 25_000, // ms between pings; who has not answered one by the next is gone
  leaving: 2_000, // ms in which a person may come back, by a reload, without having left
  closing: 3_000, // ms that a closing handshake may take when the server stops
};
