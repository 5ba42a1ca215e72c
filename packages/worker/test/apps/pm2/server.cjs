// An app written for PM2: it reports when it is ready, and stops on request.
const http = require('node:http');

const server = http.createServer((req, res) => {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'pm2', ip: req.socket.remoteAddress, port: server.address().port }));
});

server.listen(3000, () => {
  if (process.send) process.send('ready');
});

process.on('message', (message) => {
  if (message !== 'shutdown') return;
  console.log('stops as asked');
  server.close(() => process.exit(0));
  server.closeAllConnections();
});
