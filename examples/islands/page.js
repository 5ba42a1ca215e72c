// The page's server: gets its islands with hypernova-client, as any Hypernova page does, and puts them into its layout.
// Renders nothing itself.
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import Hypernova from 'hypernova-client';
import { dataFor } from './data.js';
import { layout } from './layout.js';

const BASE = process.env.BASE_PATH ?? '';
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.woff2': 'font/woff2' };

const folder = new URL('dist/public/', import.meta.url);
const files = new Map(readdirSync(folder).map((name) => [`/${name}`, readFileSync(new URL(name, folder))]));

/** Why a whole batch was not rendered. The client reports this only to its plugins. */
const reasons = new WeakMap();
const renderer = new Hypernova({
  url: process.env.HYPERNOVA_URL ?? 'http://127.0.0.1:8080/batch',
  plugins: [{ onError: (error, jobs) => reasons.set(jobs, error) }],
});

createServer((req, res) => {
  answer(req, res).catch((error) => {
    console.error(error); // without this, Node would end the process, and all its requests
    if (res.headersSent) res.destroy();
    else res.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end('Something went wrong.\n');
  });
}).listen(process.env.PORT ?? 3000, function () {
  console.log(`the page is on http://127.0.0.1:${this.address().port}${BASE}/`);
});

async function answer(req, res) {
  const [pathname, query] = req.url.split('?');
  const path = pathname.startsWith(BASE) ? pathname.slice(BASE.length) || '/' : undefined;
  const file = files.get(path);
  if (file) return res.setHeader('content-type', TYPES[extname(path)]).setHeader('cache-control', 'public, max-age=3600').end(file);
  if (path !== '/') return res.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('There is no such page.\n');
  const html = layout(await islandsFor(dataFor({ broken: new URLSearchParams(query).has('broken') })), BASE);
  res.setHeader('content-type', 'text/html; charset=utf-8').end(html);
}

/** Two batches at once, with the islands at the top in their own batch, so that two workers share the page. */
async function islandsFor({ Search, Viewers, Stays, ...below }) {
  const batches = await Promise.all([renderer.render({ Search, Viewers, Stays }), renderer.render(below)]);
  return Object.assign({}, ...batches.map(withReasons));
}

function withReasons(results) {
  const named = Object.entries(results).map(([name, { html, meta, duration, error }]) => {
    const reason = error ?? reasons.get(results);
    if (reason) console.error(`${name} is left to the browser: ${reason.message}`);
    return [name, { html, meta, duration, reason: reason?.message }];
  });
  return Object.fromEntries(named);
}
