// An app that runs its own cluster and opens a port for metrics first: `before` or `after` its primary forks, or in its `worker`.
const cluster = require('node:cluster');
const http = require('node:http');

const opens = process.argv[2];

function serveMetrics(then) {
  const server = http.createServer({ keepAliveTimeout: 1234 }, (req, res) => {
    res.setHeader('connection', 'close');
    res.end(`metrics, ${server.keepAliveTimeout} ms`);
  });
  server.listen(Number(process.env.METRICS_PORT), '127.0.0.1', then);
}

function serve() {
  const server = http.createServer((req, res) => {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ app: 'cluster', ip: req.socket.remoteAddress, port: server.address().port }));
  });
  server.listen(process.env.PORT);
}

if (cluster.isWorker) {
  if (opens === 'worker') serveMetrics(serve);
  else serve();
} else if (opens === 'before') {
  serveMetrics(() => cluster.fork());
} else {
  cluster.fork();
  if (opens === 'after') serveMetrics();
}
