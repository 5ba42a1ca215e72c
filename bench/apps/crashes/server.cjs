// An app with one bug: some requests end its process. All others are answered after 10 ms of work. Knows nothing of
// Hostler.
const http = require('node:http');

http.createServer((req, res) => {
  if (req.url.endsWith('/exit')) process.exit(1);
  if (req.url.endsWith('/throw')) setImmediate(() => { throw new Error('a bug'); });
  else setTimeout(() => res.end('ok'), 10);
}).listen(3000);
