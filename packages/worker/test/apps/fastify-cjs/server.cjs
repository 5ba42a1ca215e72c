// Fastify 5 as CommonJS, with its default host: it listens on every address of localhost.
const fastify = require('fastify')({ trustProxy: 'loopback' });

fastify.get('/', (request) => ({
  app: 'fastify',
  ip: request.ip,
  proto: request.protocol,
  port: fastify.server.address().port,
}));

fastify.listen({ port: 3000 }).then((address) => console.log(`listening at ${address}`));
