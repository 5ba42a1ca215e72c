// A Socket.IO server with its default transports, and a page with a client of its own. Each connection is told the process id.
const http = require('node:http');
const { Server } = require('socket.io');

const PAGE = `<!doctype html><title>Socket.IO</title><script src="/socket.io/socket.io.js"></script><script>
  window.seen = new Promise((resolve) => {
    const errors = [];
    const socket = io({ reconnectionAttempts: 3 });
    socket.on('connect_error', (error) => errors.push(error.message));
    socket.on('hello', (hello) => {
      const finish = () => socket.emit('echo', 'x', (pid) => resolve({ first: hello, last: pid, errors, transport: socket.io.engine.transport.name }));
      if (socket.io.engine.transport.name === 'websocket') finish();
      else socket.io.engine.once('upgrade', finish);
    });
    setTimeout(() => resolve({ errors, lost: true }), 30000);
  });
</script>`;

const server = http.createServer((req, res) => {
  if (req.url === '/') res.setHeader('content-type', 'text/html').end(PAGE);
  else res.setHeader('content-type', 'application/json').end(JSON.stringify({ pid: process.pid, headers: req.headers }));
});
// A client that only polls may leave without a word. A ping ends its poll; the default would be 25 s.
const io = new Server(server, { pingInterval: 2000 });
io.on('connection', (socket) => {
  socket.emit('hello', process.pid);
  socket.on('echo', (text, answer) => answer(process.pid));
});
server.listen(3000);
