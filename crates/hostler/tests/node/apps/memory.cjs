// Keeps state in memory: each answer tells the process, its number, and the header fields of the request. /wait and /spin (the event
// loop free or busy) take ?ms=50 or ?until=FILE. /exit ends the process. A WebSocket is told the process and then echoes.
// Has never heard of Hostler.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { WebSocketServer } = require('ws');

const server = http.createServer(async (req, res) => {
  const { pathname, searchParams } = new URL(req.url, 'http://app');
  const [until, over] = [searchParams.get('until'), Date.now() + Number(searchParams.get('ms'))];
  const isOver = () => (until ? fs.existsSync(path.join(process.env.TEST_FOLDER, until)) : Date.now() >= over);
  if (pathname === '/exit') process.exit(1);
  if (pathname === '/spin') while (!isOver());
  if (pathname === '/wait') while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 2));
  res.setHeader('content-type', 'application/json');
  if (pathname === '/cached') res.setHeader('cache-control', 'max-age=60');
  res.end(JSON.stringify({ pid: process.pid, worker: process.env.HOSTLER_WORKER, headers: req.headers }));
});
new WebSocketServer({ server }).on('connection', (socket) => {
  socket.send(String(process.pid));
  socket.on('message', (data, binary) => socket.send(data, { binary }));
  socket.on('error', () => {});
});
server.listen(3000);
