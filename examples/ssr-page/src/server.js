// The web server: plain node:http, one full render for each request.
import { createServer } from 'node:http';
import font from '@fontsource-variable/figtree/files/figtree-latin-wght-normal.woff2';
import { within } from './base.js';
import { STAMP, render } from './page.jsx';

const server = createServer((request, response) => {
  try {
    answer(request, response);
  } catch (error) {
    console.error(error);
    send(response, 500, 'text/plain', 'Something went wrong\n');
  }
});

server.listen(process.env.PORT ?? 3000, () => {
  console.log(`listening on http://localhost:${server.address().port}`);
});

function answer(request, response) {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return send(response, 405, 'text/plain', 'Only GET and HEAD here\n');
  }
  if (!URL.canParse(request.url, 'http://localhost')) return send(response, 400, 'text/plain', 'Not an address\n');
  const url = new URL(request.url, 'http://localhost');
  const path = within(url.pathname);
  if (path === '') {
    response.setHeader('location', `${url.pathname}/${url.search}`);
    return send(response, 308, 'text/plain', '');
  }
  if (path === '/healthz') return send(response, 200, 'text/plain', 'ok\n');
  if (path === '/figtree.woff2') {
    response.setHeader('cache-control', 'public, max-age=31536000, immutable');
    return send(response, 200, 'font/woff2', font);
  }
  return sendPage(response, url);
}

function sendPage(response, url) {
  const begun = performance.now();
  const { status, html } = render(url);
  const took = (performance.now() - begun).toFixed(1);
  response.setHeader('server-timing', `render;dur=${took}`);
  send(response, status, 'text/html', html.replace(STAMP, `Rendered by ${whoAmI()} in ${took} ms`));
}

/** NODE_APP_INSTANCE counts from 0, as in PM2. The page shows numbers from 1. */
function whoAmI() {
  const instance = process.env.NODE_APP_INSTANCE;
  return instance ? `worker ${Number(instance) + 1} (process ${process.pid})` : `process ${process.pid}`;
}

function send(response, status, type, body) {
  const bytes = Buffer.from(body);
  response.writeHead(status, { 'content-type': type.startsWith('text/') ? `${type}; charset=utf-8` : type, 'content-length': bytes.length });
  response.end(bytes);
}
