// One app on two addresses with the same port, as Fastify does it for localhost.
import { once } from 'node:events';
import http from 'node:http';

const answer = (req, res) => {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'two-addresses', addresses: servers.map((server) => server.address()) }));
};
const servers = [];
for (const host of ['127.0.0.1', '::1']) {
  const server = http.createServer(answer).listen({ port: servers[0]?.address().port ?? 3000, host });
  servers.push(server);
  await once(server, 'listening');
}
console.log('both listen');
