// An app with short timeouts: 200 ms for each of them. `node server.mjs sockets` adds the timeout of the sockets.
import http from 'node:http';

const server = http.createServer(
  { keepAliveTimeout: 200, requestTimeout: 200, headersTimeout: 200, connectionsCheckingInterval: 50 },
  (req, res) => {
    req.setTimeout(200);
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ app: 'timeouts', port: server.address().port }));
  },
);
if (process.argv[2] === 'sockets') server.timeout = 200;
server.maxRequestsPerSocket = 1;
server.listen(3000);
server.keepAliveTimeout = 200;
