// An app that is quick to close connections: 60 ms for everything there is; `node server.mjs sockets` adds the sockets' own timeout.
import http from 'node:http';

const server = http.createServer(
  { keepAliveTimeout: 60, requestTimeout: 60, headersTimeout: 60, connectionsCheckingInterval: 20 },
  (req, res) => {
    req.setTimeout(60);
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ app: 'timeouts', port: server.address().port }));
  },
);
if (process.argv[2] === 'sockets') server.timeout = 60;
server.maxRequestsPerSocket = 1;
server.listen(3000);
server.keepAliveTimeout = 60;
