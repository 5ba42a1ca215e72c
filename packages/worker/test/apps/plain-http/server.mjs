// node:http without a framework, with each form of listen(): node server.mjs number|string|options|host|env|random|none
import http from 'node:http';

const server = http.createServer((req, res) => {
  const { remoteAddress: ip, localPort } = req.socket;
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'http', ip, localPort, local: req.socket.address(), pid: process.pid, ...server.address() }));
});
const listening = () => console.log(`listening on ${JSON.stringify(server.address())}`);

const forms = {
  number: () => server.listen(3000, listening),
  string: () => server.listen('3000', listening),
  options: () => server.listen({ port: 3000, host: '0.0.0.0', exclusive: true, backlog: 1, ipv6Only: false }, listening),
  host: () => server.listen(3000, '::1', 511, listening),
  env: () => server.listen(process.env.PORT, listening),
  random: () => server.listen(listening),
  none: () => server.listen().on('listening', listening),
};
forms[process.argv[2] ?? 'number']();
