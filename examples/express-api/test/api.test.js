// The API as it runs in production, over HTTP.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { start } from './start.js';

const { base, process: server } = await start();
after(() => server.kill('SIGKILL'));

test('listings come in pages of twenty, and can be narrowed to a country', async () => {
  const first = await json('/api/listings');
  assert.equal(first.body.total, 140);
  assert.equal(first.body.listings.length, 20);
  const second = await json('/api/listings?from=20');
  assert.equal(second.body.listings[0].id, 21);
  const irish = await json('/api/listings?country=IE');
  assert.ok(irish.body.total > 0 && irish.body.total < 140);
  assert.ok(irish.body.listings.length > 0 && irish.body.listings.every(({ country }) => country === 'IE'));
});

test('one listing is found by its number, an unknown one is a 404, a bad page number a 400', async () => {
  assert.deepEqual((await json('/api/listings/6')).body, { id: 6, kind: 'cabin', town: 'Dingle', country: 'IE', guests: 7, nightly: 65 });
  assert.equal((await json('/api/listings/999')).status, 404);
  assert.equal((await json('/api/listings/1e1')).status, 404);
  assert.equal((await json('/api/listings?from=-1')).status, 400);
  assert.equal((await json('/api/nothing')).status, 404);
});

test('echo gives back JSON, forms and text', async () => {
  assert.deepEqual((await post('/api/echo', { type: 'application/json', body: '{"a":[1,"ü"]}' })).body.body, { a: [1, 'ü'] });
  assert.deepEqual((await post('/api/echo', { type: 'application/x-www-form-urlencoded', body: 'a=1&b=2' })).body.body, { a: '1', b: '2' });
  assert.equal((await post('/api/echo', { type: 'text/plain', body: 'plain' })).body.body, 'plain');
});

test('a broken body gets a 400', async () => {
  assert.equal((await post('/api/echo', { type: 'application/json', body: '{"a":' })).status, 400);
});

test('JSON, forms and text may be as long as 1 MB, and a longer one gets a 413', async () => {
  for (const [type, bodyOf] of [
    ['application/json', (text) => JSON.stringify({ text })],
    ['application/x-www-form-urlencoded', (text) => `text=${text}`],
    ['text/plain', (text) => text],
  ]) {
    assert.equal((await post('/api/echo', { type, body: bodyOf('x'.repeat(1_000_000)) })).status, 200, type);
    assert.equal((await post('/api/echo', { type, body: bodyOf('x'.repeat(1_100_000)) })).status, 413, type);
  }
});

test('a proxy on the same machine is trusted for the client address', async () => {
  const plain = await json('/api/whoami');
  assert.match(plain.body.ip, /127\.0\.0\.1$|^::1$/);
  assert.equal(plain.body.protocol, 'http');
  const proxied = await json('/api/whoami', { headers: { 'x-forwarded-for': '81.2.69.160', 'x-forwarded-proto': 'https' } });
  assert.equal(proxied.body.ip, '81.2.69.160');
  assert.equal(proxied.body.protocol, 'https');
  assert.equal(proxied.body.process, server.pid);
});

test('SIGTERM ends the process cleanly', async () => {
  const own = await start();
  assert.equal((await fetch(`${own.base}/api/whoami`)).status, 200);
  own.process.kill('SIGTERM');
  const [code] = await once(own.process, 'exit');
  assert.equal(code, 0);
});

async function json(path, options) {
  const answer = await fetch(base + path, options);
  return { status: answer.status, body: await answer.json() };
}

function post(path, { type, body }) {
  return json(path, { method: 'POST', headers: { 'content-type': type }, body });
}
