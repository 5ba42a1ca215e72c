// The page and its files, read once and kept in memory. Knows no WebSockets.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isRoom } from './frames.js';

const FILES = {
  'index.html': 'text/html; charset=utf-8',
  'style.css': 'text/css; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  'composer.js': 'text/javascript; charset=utf-8',
  'conversation.js': 'text/javascript; charset=utf-8',
  'link.js': 'text/javascript; charset=utf-8',
  'messages.js': 'text/javascript; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'people.js': 'text/javascript; charset=utf-8',
  'person.js': 'text/javascript; charset=utf-8',
  'side.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
};
const HEADERS = {
  'content-security-policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cache-control': 'no-cache', // revalidated each time; the response is a 304 as long as it is the same
};

/** A listener for requests. `base` is '' or a path such as '/chat'. */
export function pageUnder(base) {
  const parts = new Map(Object.entries(FILES).map(([name, type]) => [name, read(name, type, base)]));
  return (request, response) => {
    const pathname = urlOf(request.url, 'http://chat')?.pathname ?? '';
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(response, 405, 'Only GET and HEAD here\n', { allow: 'GET, HEAD' });
    if (pathname === '/healthz' || pathname === `${base}/healthz`) return plain(response, 200, 'ok\n');
    if (base && pathname === base) return plain(response, 308, '', { location: `${base}/` });
    const part = pathname.startsWith(`${base}/`) && parts.get(nameOf(pathname.slice(base.length + 1)));
    if (!part) return plain(response, 404, 'There is nothing here\n');
    send(request, response, part);
  };
}

export function urlOf(text, base) {
  return URL.canParse(text, base) ? new URL(text, base) : undefined;
}

/** The page is the same in every room. */
function nameOf(path) {
  const [room, name, ...rest] = path.split('/');
  if (path === '' || (room === 'room' && isRoom(name) && rest.length === 0)) return 'index.html';
  return path === 'index.html' ? undefined : path;
}

function read(name, type, base) {
  const body = readFileSync(new URL(`../public/${name}`, import.meta.url));
  const bytes = name === 'index.html' ? Buffer.from(body.toString().replaceAll('%BASE%', base)) : body;
  return { type, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` };
}

function send(request, response, { type, bytes, etag }) {
  const known = request.headers['if-none-match']?.split(/\s*,\s*/).includes(etag);
  if (known) return response.writeHead(304, { ...HEADERS, etag }).end();
  response.writeHead(200, { ...HEADERS, etag, 'content-type': type, 'content-length': bytes.length }).end(bytes);
}

function plain(response, status, text, headers = {}) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text), ...headers }).end(text);
}
