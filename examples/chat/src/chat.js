// The chat as one HTTP server: the page and its WebSocket. Knows nothing of processes and ports.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import { pageUnder, urlOf } from './files.js';
import { LIMITS } from './limits.js';
import { Rooms } from './rooms.js';
import { Visit } from './visit.js';

const GOING_AWAY = 1001;

/** The server, which does not listen yet, and `close`, which tells all visitors to leave and resolves when they have left. */
export async function createChat({ folder, base = '', limits: changed = {} }) {
  const limits = { ...LIMITS, ...changed };
  const rooms = await Rooms.in(folder, limits);
  // No compression: it needs hundreds of kilobytes for each connection, and messages are short.
  const sockets = new WebSocketServer({ noServer: true, maxPayload: limits.payload, perMessageDeflate: false });
  const visits = new Map();
  const server = createServer(pageUnder(base));
  let closing = false;

  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const status = refusal(request);
    if (status) return refuse(socket, status);
    sockets.handleUpgrade(request, socket, head, (connection) => {
      visits.set(connection, new Visit(connection, rooms, limits));
      connection.once('close', () => visits.delete(connection));
    });
  });

  const heart = setInterval(() => {
    for (const visit of visits.values()) visit.beat();
  }, limits.heartbeat);
  heart.unref();

  function refusal(request) {
    if (urlOf(request.url, 'http://chat')?.pathname !== `${base}/socket`) return '404 Not Found';
    if (!isOurs(request.headers)) return '403 Forbidden';
    if (closing || visits.size >= limits.connections) return '503 Service Unavailable';
    return undefined;
  }

  async function close() {
    closing = true;
    clearInterval(heart);
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    server.closeIdleConnections();
    const gone = [...visits.keys()].map((connection) => {
      connection.close(GOING_AWAY, 'restarting');
      // Without once(), which rejects if a broken frame comes first: one visitor must not end the closing of all.
      return new Promise((resolve) => connection.once('close', resolve));
    });
    await Promise.race([Promise.all(gone), wait(limits.closing, undefined, { ref: false })]);
    for (const connection of visits.keys()) connection.terminate();
    rooms.stop();
    await closed;
  }

  return { server, close };
}

/** A page of another site must not act for our visitors. A client without Origin is not a browser, and can send anything anyway. */
function isOurs({ origin, host }) {
  if (origin === undefined) return true;
  const from = urlOf(origin);
  return Boolean(from?.host) && from.host === urlOf(`${from.protocol}//${host}`)?.host;
}

/** Closes both sides: a client that keeps its own open would keep the socket here, and the server from closing. */
function refuse(socket, status) {
  socket.once('finish', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n${status.startsWith('503') ? 'Retry-After: 5\r\n' : ''}\r\n`);
}
