// An app that runs its own cluster and serves metrics from its primary, as in an example of prom-client: `node server.cjs before|after` it forks.
const cluster = require('node:cluster');
const http = require('node:http');

if (cluster.isPrimary) {
  const metrics = http.createServer((req, res) => res.end('metrics'));
  const listen = (then) => metrics.listen(Number(process.env.METRICS_PORT), '127.0.0.1', then);
  if (process.argv[2] === 'before') listen(() => cluster.fork());
  else {
    cluster.fork();
    listen();
  }
} else {
  const server = http.createServer((req, res) => {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ app: 'cluster', ip: req.socket.remoteAddress, port: server.address().port }));
  });
  server.listen(process.env.PORT);
}
