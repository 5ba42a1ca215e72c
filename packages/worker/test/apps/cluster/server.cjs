// An app that runs its own cluster. GET /crash ends the worker that answers, and the primary replaces it.
const cluster = require('node:cluster');
const http = require('node:http');

if (cluster.isPrimary) {
  for (let i = 0; i < Number(process.argv[2] ?? 2); i += 1) cluster.fork();
  cluster.on('exit', () => cluster.fork());
} else {
  const server = http.createServer((req, res) => {
    if (req.url === '/crash') process.exit(1);
    res.setHeader('content-type', 'application/json');
    res.setHeader('connection', 'close');
    const { remoteAddress: ip } = req.socket;
    res.end(JSON.stringify({ app: 'cluster', ip, port: server.address().port, pid: process.pid }));
  });
  server.listen(3000);
}
