// Sends back what comes over a WebSocket, but for 'hang', after a greeting with its process id, and writes down with which code
// each was closed. Requests get the process id, and /exit none. Told to end, it does so when its sockets have.
// Has never heard of Hostler.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { WebSocketServer } = require('ws');

const server = http.createServer((req, res) => (req.url === '/exit' ? process.exit(1) : res.end(String(process.pid))));
const sockets = new WebSocketServer({ server });

sockets.on('connection', (socket) => {
  socket.send(String(process.pid));
  socket.on('message', (data, binary) => {
    while (String(data) === 'hang');
    socket.send(data, { binary });
  });
  socket.on('error', () => {});
  socket.on('close', (code) => fs.appendFileSync(path.join(process.env.TEST_FOLDER, 'closed'), `${process.pid} ${code}\n`));
});
process.on('SIGTERM', () => setInterval(() => sockets.clients.size > 0 || process.exit(0), 5));
server.listen(3000);
