// The server as it runs in production: statuses, headers, and the line that names the process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const { base, process: server } = await start({ NODE_APP_INSTANCE: '1' });
after(() => server.kill());

test('a page names the process that rendered it, and the time it took', async () => {
  const answer = await fetch(base);
  const html = await answer.text();
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type'), /^text\/html/);
  assert.match(answer.headers.get('server-timing'), /^render;dur=\d+\.\d$/);
  assert.match(html, new RegExp(`Rendered by worker 2 \\(process ${server.pid}\\) in \\d+\\.\\d ms`));
});

test('content-length counts bytes, not characters', async () => {
  const answer = await fetch(base);
  const body = await answer.arrayBuffer();
  assert.equal(Number(answer.headers.get('content-length')), body.byteLength);
});

test('HEAD has the headers of GET and no body', async () => {
  const answer = await fetch(base, { method: 'HEAD' });
  assert.equal(answer.status, 200);
  assert.ok(Number(answer.headers.get('content-length')) > 1000);
  assert.equal(await answer.text(), '');
});

test('the server sends the font itself, cacheable for a year', async () => {
  const answer = await fetch(`${base}/figtree.woff2`);
  assert.equal(answer.headers.get('content-type'), 'font/woff2');
  assert.match(answer.headers.get('cache-control'), /immutable/);
  assert.equal(Buffer.from(await answer.arrayBuffer()).toString('latin1', 0, 4), 'wOF2');
});

test('unknown URLs and methods are refused', async () => {
  assert.equal((await fetch(`${base}/healthz`)).status, 200);
  assert.equal((await fetch(`${base}/no/such/page`)).status, 404);
  const post = await fetch(base, { method: 'POST', body: 'x' });
  assert.equal(post.status, 405);
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
});

test('the site may live below a path of its host', async (t) => {
  const own = await start({ BASE_PATH: '/stay/' });
  t.after(() => own.process.kill());
  const page = await (await fetch(`${own.base}/stay/?guests=3`)).text();
  const ours = [...page.matchAll(/(?:href|action|src)="(\/[^"]*)"|url\((\/[^)]*)\)/g)].map(([, attribute, url]) => attribute ?? url);
  assert.ok(ours.length > 50, `${ours.length} addresses`);
  assert.deepEqual(ours.filter((address) => !address.startsWith('/stay/')), []);
  assert.equal((await fetch(`${own.base}${ours.find((address) => address.endsWith('.woff2'))}`)).headers.get('content-type'), 'font/woff2');
  assert.equal((await fetch(`${own.base}${ours.find((address) => address.startsWith('/stay/homes/'))}`)).status, 200);
  const bare = await fetch(`${own.base}/stay?guests=3`, { redirect: 'manual' });
  assert.deepEqual([bare.status, bare.headers.get('location')], [308, '/stay/?guests=3']);
  for (const elsewhere of ['/', '/homes/17', '/stayed/', '/healthz']) assert.equal((await fetch(own.base + elsewhere)).status, 404);
});

/** Starts the built server on a free port and waits for the line with its address. */
async function start(env) {
  const file = fileURLToPath(new URL('../dist/server.cjs', import.meta.url));
  const child = spawn(process.execPath, [file], { env: { ...process.env, PORT: '0', ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of child.stdout) {
    const found = /http:\/\/localhost:\d+/.exec(line);
    if (found) return { base: found[0], process: child };
  }
  throw new Error('the server ended before it listened');
}
