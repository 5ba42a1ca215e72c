// The origin behind the caches: pages of a size that its path says, some of them slow, and a count of what it was asked. Knows no cache.
// It listens where PORT says, a number or the path of a socket.
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

/** What an app that can be cached says of its page. */
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
