// What an app adds for PM2: it says when it is ready, and at SIGINT finishes what it has, on kept connections too. Knows nothing
// of the app but that it calls listen() on a node:http server.
const http = require('node:http');
const { resolve } = require('node:path');

const listen = http.Server.prototype.listen;
http.Server.prototype.listen = function (...args) {
  const server = this;
  let isClosing = false;
  server.once('listening', () => process.send('ready'));
  // Before the app's own listener: a client that keeps its connection is told to make a new one, to another worker.
  server.prependListener('request', (_, response) => isClosing && response.setHeader('connection', 'close'));
  process.once('SIGINT', () => {
    isClosing = true;
    server.close(() => process.exit(0)); // closes idle connections at once, since Node 19
  });
  return listen.apply(server, args);
};

// Not an argument: PM2 without a daemon passes its own on.
require(resolve(process.env.BENCH_APP));
