// npm run docs: builds the documentation site into target/book and serves it on http://127.0.0.1:3001 until Ctrl-C. --build only builds.
// --port N sets another port. Knows no page.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { parseArgs } from 'node:util';

import { BOOK, buildBook } from './docs/book.mjs';
import { say, stop } from './steps.mjs';
import { makeMdbook } from './tools.mjs';

const TYPES = {
  '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.png': 'image/png', '.json': 'application/json',
  '.woff2': 'font/woff2', '.yml': 'text/plain; charset=utf-8',
};

const { values } = parseArgs({ options: { build: { type: 'boolean' }, port: { type: 'string', default: '3001' } } });
const { path, reason } = process.env.TEST_MDBOOK ? { path: process.env.TEST_MDBOOK } : await makeMdbook();
if (!path) stop(`mdBook cannot be installed: ${reason}`);
await buildBook(path).catch((error) => stop(error.message));
say(`The pages are in ${BOOK}`);
if (!values.build) serve(Number(values.port));

function serve(port) {
  const server = createServer((request, response) => {
    const file = fileOf(new URL(request.url, 'http://localhost').pathname);
    response.writeHead(file ? 200 : 404, { 'content-type': TYPES[extname(file ?? '.html')] ?? 'application/octet-stream' });
    createReadStream(file ?? join(BOOK, '404.html')).pipe(response);
  });
  server.on('error', (error) => stop(`The pages cannot be served: ${error.message}. --port sets another port.`));
  server.listen(port, '127.0.0.1', () => say(`Open http://127.0.0.1:${server.address().port}. Ctrl-C ends it.`));
}

/** The file of a path, or nothing. */
function fileOf(path) {
  let file;
  try {
    file = join(BOOK, decodeURIComponent(path));
  } catch {
    return undefined;
  }
  if (!`${file}/`.startsWith(`${BOOK}/`)) return undefined;
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isDirectory()) return fileOf(`${path.replace(/\/$/, '')}/index.html`);
  return stat?.isFile() ? file : undefined;
}
