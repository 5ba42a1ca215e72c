// An app with its metrics on a port of their own, which it opens first.
import { once } from 'node:events';
import http from 'node:http';

const metrics = http.createServer((req, res) => res.end('requests_total 0\n'));
metrics.listen(Number(process.env.METRICS_PORT ?? 9464));
await once(metrics, 'listening');

const server = http.createServer((req, res) => {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'metrics-first', ip: req.socket.remoteAddress, port: server.address().port }));
});
server.listen(Number(process.env.PORT ?? process.env.APP_PORT ?? 3000));
