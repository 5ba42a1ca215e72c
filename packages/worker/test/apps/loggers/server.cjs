// An app that logs with a real logger, which its argument names.
'use strict';
const http = require('http');

const loggers = {
  pino() {
    const pino = require('pino');
    return pino({ serializers: { err: pino.stdSerializers.err } });
  },
  winston() {
    const { createLogger, format, transports } = require('winston');
    const logger = createLogger({ format: format.combine(format.timestamp(), format.errors({ stack: true }), format.json()), transports: [new transports.Console()] });
    return {
      info: (fields, message) => logger.info(message, fields),
      error: ({ err }, message) => logger.error(message, { stack: err.stack }),
    };
  },
  bunyan() {
    const bunyan = require('bunyan');
    return bunyan.createLogger({ name: 'shop', serializers: bunyan.stdSerializers });
  },
};

const logger = loggers[process.argv[2]]();
const server = http.createServer((request, response) => {
  logger.info({ url: request.url, big: 'x'.repeat(Number(request.headers['x-big'] ?? 0)) }, 'a request');
  if (request.url === '/error') logger.error({ err: new Error('it broke') }, 'no luck');
  response.end('ok');
});
server.listen(3000);
