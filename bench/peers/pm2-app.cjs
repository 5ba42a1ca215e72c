// The additions of an app for PM2: it reports when it is ready, and at SIGINT it finishes its requests, also on
// kept-alive connections. Knows of the app only that it calls listen() on a node:http server.
const http = require('node:http');
const { resolve } = require('node:path');

const listen = http.Server.prototype.listen;
http.Server.prototype.listen = function (...args) {
  const server = this;
  let isClosing = false;
  server.once('listening', () => process.send('ready'));
  // Before the app's own listener: tells a client with a kept-alive connection to open a new one, which another worker
  // gets.
  server.prependListener('request', (_, response) => isClosing && response.setHeader('connection', 'close'));
  process.once('SIGINT', () => {
    isClosing = true;
    server.close(() => process.exit(0)); // closes idle connections at once, since Node 19
  });
  return listen.apply(server, args);
};

// Not an argument, because PM2 without a daemon passes on its own arguments.
require(resolve(process.env.BENCH_APP));
