// Fastify 5 as an ES module on all addresses, with top-level await.
import Fastify from 'fastify';

const fastify = Fastify({ trustProxy: 'loopback' });

fastify.get('/', (request) => ({
  app: 'fastify',
  ip: request.ip,
  proto: request.protocol,
  port: fastify.server.address().port,
}));

const address = await fastify.listen({ port: 3000, host: '::' });
console.log(`listening at ${address}`);
