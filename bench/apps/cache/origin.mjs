// The origin behind the caches. Its pages have the size in their path, some of them are slow, and it counts its requests.
// Knows no cache. It listens on PORT, a number or the path of a socket.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const SLOW_MS = 200;
const DATE = new Date().toUTCString();
const bodies = new Map();
let asked = 0;

const server = createServer((request, response) => {
  if (request.url === '/count') return response.end(String(asked));
  asked += 1;
  const [, kind, size] = request.url.split('/');
  if (kind === 'slow') setTimeout(() => send(response, Number(size), request.url), SLOW_MS);
  else if (kind === 'page') send(response, Number(size), request.url);
  else response.writeHead(404).end();
});
server.keepAliveTimeout = 600_000;
server.listen(process.env.PORT);

/** The headers of an app whose pages can be cached. */
function send(response, size, url) {
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': size,
    'cache-control': 'public, max-age=3600',
    'last-modified': DATE,
    etag: `"${createHash('sha1').update(url).digest('base64url')}"`,
  });
  response.end(body(size));
}

function body(size) {
  if (!bodies.has(size)) bodies.set(size, Buffer.from('<p>a page of this size, again and again</p>\n'.repeat(size / 40 + 1)).subarray(0, size));
  return bodies.get(size);
}
