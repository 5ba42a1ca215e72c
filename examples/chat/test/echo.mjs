// A WebSocket server that echoes messages, with the limits of its library off. Knows no suite.
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const server = createServer((_, answer) => answer.end('echo'));
const options = { perMessageDeflate: true, maxPayload: 0, maxFragments: 0, maxBufferedChunks: 0 };
new WebSocketServer({ server, ...options }).on('connection', (socket) => {
  socket.on('message', (message, binary) => socket.send(message, { binary }));
  // `ws` has already answered the client's error.
  socket.on('error', () => {});
});
server.listen(process.env.PORT);
