// Listens, and reports its address and its environment to the app.
import http from 'node:http';

const server = http.createServer((req, res) => res.end('helper'));
server.listen(Number(process.argv[2]), '127.0.0.1', () => {
  process.send({ address: server.address(), nodeOptions: process.env.NODE_OPTIONS, env: process.env });
});
