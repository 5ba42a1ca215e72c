// An app with one bug: some requests end its process. Everything else is answered after 10 ms of work. Has never heard of Hostler.
const http = require('node:http');

http.createServer((req, res) => {
  if (req.url.endsWith('/exit')) process.exit(1);
  if (req.url.endsWith('/throw')) setImmediate(() => { throw new Error('a bug'); });
  else setTimeout(() => res.end('ok'), 10);
}).listen(3000);
