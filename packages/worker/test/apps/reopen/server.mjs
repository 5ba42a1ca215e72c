// An app that closes its server and opens it again: GET /reopen.
import http from 'node:http';

const answer = (req, res) => {
  res.setHeader('connection', 'close');
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'reopen', port: server.address()?.port }));
  if (req.url === '/reopen') server.close(open);
};
let server;
function open() {
  server = http.createServer(answer).listen(3000);
}
open();
