// The web server: chooses the handler of each request. Plain node:http.
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { readBuilt, sendAsset } from './files.js';
import { forward } from './forward.js';
import { sendPage, sendShell } from './page.jsx';
import { readSettings } from './settings.js';

const settings = readSettings(process.env);
const built = readBuilt(fileURLToPath(new URL('.', import.meta.url)), settings.base);

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    if (response.headersSent) response.destroy();
    else sendShell({ response, status: 500, built });
  });
});

server.listen(settings.port, () => {
  console.log(`listening on http://localhost:${server.address().port}${settings.base}/`);
});
process.on('SIGTERM', () => {
  server.close();
  server.keepAliveTimeout = 1; // so that a connection ends soon after its response when the server stops
});

async function answer(request, response) {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return sendText(response, 405, 'Only GET and HEAD here\n');
  }
  // Parsed as a path: //evil.example is a path too, and not a host.
  if (!request.url.startsWith('/') || !URL.canParse(`http://page${request.url}`)) return sendText(response, 400, 'Not an address\n');
  const url = new URL(`http://page${request.url}`);
  if (url.pathname === `${settings.base}/healthz`) return sendText(response, 200, 'ok\n');
  if (url.pathname.startsWith('/api/')) return forward({ response, url, api: settings.api });
  const assets = `${settings.base}/assets/`;
  if (url.pathname.startsWith(assets)) {
    return sendAsset({ request, response, assets: built.assets, name: url.pathname.slice(assets.length) }) || sendText(response, 404, 'No such file\n');
  }
  return sendPage({ request, response, url, settings, built });
}

function sendText(response, status, text) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
