// The two lookups with Fastify, set up for speed as in its documentation: no logger, finished texts, one route each.
import Fastify from 'fastify';
import { cities, postalCodes } from './data.mjs';

const codes = postalCodes(process.env.POSTAL);
const cityOf = process.env.GEO ? await cities(process.env.GEO) : undefined;
// A function instead of the address, because for an address Fastify computes with networks at each request.
const app = Fastify({ logger: false, trustProxy: (address) => address === '127.0.0.1', keepAliveTimeout: 600_000 });

app.get('/api/zipinfo/byzip/:code', (request, reply) => {
  const found = codes.get(request.params.code);
  if (!found) return reply.code(404).type('application/json').send('{}');
  return reply.type('application/json').header('cache-control', 'public, max-age=7200').header('etag', found.etag).send(found.body);
});
app.get('/get_city', (request, reply) => reply.type('text/plain').header('cache-control', 'private, no-store').send(cityOf(request.ip).body));

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 4096 });
