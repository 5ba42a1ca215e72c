// An app that serves TLS itself, beside plain HTTP.
import http from 'node:http';
import https from 'node:https';

const answer = (req, res) => {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'tls', ip: req.socket.remoteAddress, port: server.address().port }));
};
const secure = https.createServer(answer).listen(Number(process.env.TLS_PORT ?? 3443));
const server = http.createServer(answer);
secure.on('listening', () => server.listen(3000));
