// An app that runs its own cluster. Each worker opens a server of `https` or `http2` first, and then one of plain HTTP.
const cluster = require('node:cluster');
const http = require('node:http');

if (cluster.isPrimary) {
  for (let i = 0; i < 2; i += 1) cluster.fork();
} else {
  const { createServer } = require(`node:${process.argv[2]}`);
  const app = http.createServer((req, res) => {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ app: 'cluster', ip: req.socket.remoteAddress, port: app.address().port }));
  });
  createServer({}).listen(Number(process.env.SECURE_PORT), '127.0.0.1', () => app.listen(3000));
}
