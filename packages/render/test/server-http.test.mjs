// The endpoint over HTTP: routing, bodies, status codes and headers, the same as npm hypernova 2.5.0.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { createRenderer } from '@hostler/render/server';
import { client, JSON_TYPE, serve } from './support/renderer.mjs';

const components = { Hello: ({ who }) => `<p>${who}</p>`, 'a/b c.js': () => 'dots and slashes' };
const hello = { a: { name: 'Hello', data: { who: 'Ada' } } };
const EMPTY = '{"success":true,"error":null,"results":{}}';

test('a batch is answered with the fields of Hypernova in the order of Hypernova', async (t) => {
  const { post } = await serve(t, { components });
  const answer = await post({ ...hello, b: { name: 'a/b c.js' } });
  const text = await answer.text();
  assert.equal(answer.status, 200);
  assert.match(
    text,
    /^\{"success":true,"error":null,"results":\{"a":\{"name":"Hello","html":"<p>Ada<\/p>","meta":\{\},"duration":[\d.e-]+,"statusCode":200,"success":true,"error":null\},"b":\{"name":"a\/b c\.js","html":"dots and slashes",/,
  );
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(text)));
  const hash = createHash('sha1').update(text).digest('base64').slice(0, 27);
  assert.equal(answer.headers.get('etag'), `W/"${Buffer.byteLength(text).toString(16)}-${hash}"`);
});

test('an array of jobs has its indexes for tokens', async (t) => {
  const { results } = await serve(t, { components });
  const found = await results([hello.a, { name: 'Hello', data: { who: 'Bob' } }]);
  assert.deepEqual(Object.entries(found).map(([token, { html }]) => [token, html]), [['0', '<p>Ada</p>'], ['1', '<p>Bob</p>']]);
});

test('the endpoint is found in any case, with a slash at the end, with a query, and in a whole URL', async (t) => {
  const { post, url } = await serve(t, { components });
  for (const path of ['/batch', '/batch/', '/BATCH', '/batch?x=1', '/Batch/?a=/b']) assert.equal((await post({}, { path })).status, 200, path);
  const whole = await raw(url, `POST ${url}/batch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  assert.match(whole, /^HTTP\/1\.1 200 /);
});

test('the endpoint has the configured path', async (t) => {
  const { post } = await serve(t, { components, endpoint: '/islands/render' });
  assert.equal((await post(hello, { path: '/islands/render/' })).status, 200);
  assert.equal((await post(hello, { path: '/batch' })).status, 404);
});

test('everything else is not found, with the page that Express has for it', async (t) => {
  const { url, post } = await serve(t, { components });
  const page = await fetch(`${url}/batch`);
  assert.equal(page.status, 404);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(page.headers.get('content-security-policy'), "default-src 'none'");
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
  const text = '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot GET /batch</pre>\n</body>\n</html>\n';
  assert.equal(await page.text(), text);
  const head = await fetch(`${url}/batch`, { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers.get('content-length')], [404, '145']);
  for (const path of ['/', '/batches', '/batch/x']) assert.equal((await post(hello, { path })).status, 404, path);
  const odd = await raw(url, "GET /<b>'%zz\" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  assert.match(odd, /<pre>Cannot GET \/%3Cb%3E&#39;%25zz%22<\/pre>/);
  const options = await fetch(`${url}/batch`, { method: 'OPTIONS' });
  assert.deepEqual([options.status, options.headers.get('allow'), await options.text()], [200, 'POST', 'POST']);
});

test('a body with another content type is an empty batch', async (t) => {
  const { post } = await serve(t, { components });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/vnd.api+json', 'application/json5']) {
    const answer = await post(hello, { headers: { 'content-type': type } });
    assert.deepEqual([answer.status, await answer.text()], [200, EMPTY], type);
  }
  assert.equal(await (await post('')).text(), EMPTY);
  assert.equal(await (await post({})).text(), EMPTY);
});

test('the content type may have a charset, in any case', async (t) => {
  const { results, post } = await serve(t, { components });
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON;Charset="UTF-8"', 'application/json; x=y; charset=utf8']) {
    assert.equal((await results(hello, { headers: { 'content-type': type } })).a.html, '<p>Ada</p>', type);
  }
  const wide = Buffer.from(JSON.stringify(hello), 'utf16le');
  assert.equal((await results(wide, { headers: { 'content-type': 'application/json; charset=utf-16le' } })).a.html, '<p>Ada</p>');
  assert.equal((await results(`\ufeff${JSON.stringify(hello)}`)).a.html, '<p>Ada</p>');
  const latin = await post('{}', { headers: { 'content-type': 'application/json; charset=iso-8859-1' } });
  assert.deepEqual([latin.status, await latin.text()], [415, '']);
});

test('a long content type keeps no other request waiting', async (t) => {
  const { post } = await serve(t, { components });
  const type = `application/json;charset=${' '.repeat(15_000)}x"y`;
  const began = performance.now();
  for (let sent = 0; sent < 10; sent += 1) {
    assert.equal((await post(hello, { headers: { 'content-type': type } })).status, 200);
  }
  const took = performance.now() - began;
  assert.ok(took < 4_000, `${took} ms`); // some milliseconds, where a search that tries each number of spaces takes half a second for each
});

test('a body that is no JSON is refused with an empty 400', async (t) => {
  const { post, lines } = await serve(t, { components });
  for (const body of ['{bad', '"text"', 'null', 'true', '17', ' ', '{} {}']) {
    const answer = await post(body);
    assert.deepEqual([answer.status, await answer.text()], [400, ''], body);
  }
  assert.match(lines[0], /^info: a batch was refused with 400: .*JSON/);
});

test('bodies may be compressed', async (t) => {
  const { results, post } = await serve(t, { components });
  const body = JSON.stringify(hello);
  for (const [encoding, pack] of [['gzip', gzipSync], ['GZIP', gzipSync], ['deflate', deflateSync], ['br', brotliCompressSync]]) {
    assert.equal((await results(pack(body), { headers: { ...JSON_TYPE, 'content-encoding': encoding } })).a.html, '<p>Ada</p>', encoding);
  }
  for (const none of ['identity', '']) {
    assert.equal((await results(body, { headers: { ...JSON_TYPE, 'content-encoding': none } })).a.html, '<p>Ada</p>', `"${none}"`);
  }
  const broken = await post(body, { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } });
  assert.deepEqual([broken.status, await broken.text()], [400, '']);
  for (const encoding of ['zstd', 'constructor', 'gzip, gzip']) {
    const unknown = await post(body, { headers: { ...JSON_TYPE, 'content-encoding': encoding } });
    assert.deepEqual([unknown.status, await unknown.text()], [415, ''], encoding);
  }
});

test('a body of 1,024,000 bytes is accepted, one byte more is refused with 413', async (t) => {
  const { results, post } = await serve(t, { components: { Size: ({ pad }) => String(pad.length) } });
  const frame = JSON.stringify({ a: { name: 'Size', data: { pad: '' } } });
  const sized = (bytes) => frame.replace('""', () => `"${'x'.repeat(bytes - frame.length)}"`);
  assert.equal((await results(sized(1_024_000))).a.html, String(1_024_000 - frame.length));
  const over = await post(sized(1_024_001));
  assert.deepEqual([over.status, await over.text()], [413, '']);
  const gzip = { ...JSON_TYPE, 'content-encoding': 'gzip' };
  assert.equal((await results(gzipSync(sized(1_024_000)), { headers: gzip })).a.success, true);
  assert.equal((await post(gzipSync(sized(1_024_001)), { headers: gzip })).status, 413);
});

test('a small body that would inflate to very much is refused', async (t) => {
  const { post } = await serve(t, { components });
  const bomb = gzipSync(Buffer.alloc(200 << 20)); // 200 MiB of zeros in 200 KiB
  const answer = await post(bomb, { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } });
  assert.equal(answer.status, 413);
});

test('the limit may be in megabytes, holds for chunked bodies too, and a wrong one stops the start', async (t) => {
  const { url } = await serve(t, { components, bodyParser: { limit: '1kb' } });
  const head = 'POST /batch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunk = `200\r\n${' '.repeat(0x200)}\r\n`;
  assert.match(await raw(url, `${head}${chunk}${chunk}${chunk}0\r\n\r\n`), /^HTTP\/1\.1 413 /);
  assert.match(await raw(url, `${head}${chunk}2\r\n{}\r\n0\r\n\r\n`), /^HTTP\/1\.1 200 /);
  const getComponent = () => undefined;
  assert.throws(() => createRenderer({ getComponent, bodyParser: { limit: 'much' } }), /^TypeError: bodyParser\.limit must be .* not "much"$/);
});

test('with a limit of Infinity, each body is accepted, compressed too', async (t) => {
  const { results } = await serve(t, { components: { Size: ({ pad }) => String(pad.length) }, bodyParser: { limit: Infinity } });
  const body = JSON.stringify({ a: { name: 'Size', data: { pad: 'x'.repeat(2_000_000) } } });
  assert.equal((await results(body)).a.html, '2000000');
  assert.equal((await results(gzipSync(body), { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } })).a.html, '2000000');
});

test('a batch with more jobs than maxJobs is refused with the reason, and none of its jobs is rendered', async (t) => {
  let rendered = 0;
  const told = [];
  const plugins = [{ onError: (_batch, error) => told.push(error.message) }];
  const { post, results, lines } = await serve(t, { components: { Count: () => String((rendered += 1)) }, plugins, maxJobs: 2 });
  const jobs = (count) => Array.from({ length: count }, () => ({ name: 'Count' }));
  const answer = await post(jobs(3));
  const batch = await answer.json();
  const message = 'the batch has 3 jobs, and the limit is 2 (maxJobs)';
  assert.deepEqual([answer.status, answer.headers.get('content-type')], [413, 'application/json; charset=utf-8']);
  assert.deepEqual(batch, { success: false, error: { name: 'RangeError', message, stack: batch.error.stack }, results: null });
  assert.equal(batch.error.stack[0], `RangeError: ${message}`);
  assert.deepEqual([rendered, told, lines], [0, [message], [`info: a batch was refused with 413: ${message}`]]);
  assert.equal((await results(jobs(2)))[1].html, '2');
});

test('without maxJobs, a batch may have 10,000 jobs', async (t) => {
  const getComponent = () => ok;
  const ok = () => 'ok';
  const { post, results } = await serve(t, { getComponent });
  assert.equal(Object.keys(await results(Array(10_000).fill(0))).length, 10_000);
  assert.equal((await post(Array(10_001).fill(0))).status, 413);
  const all = await serve(t, { getComponent, maxJobs: Infinity });
  assert.equal(Object.keys(await all.results(Array(10_001).fill(0))).length, 10_001);
  for (const maxJobs of [0, -1, 'many', null]) assert.throws(() => createRenderer({ getComponent, maxJobs }), /^TypeError: maxJobs must be a number of jobs/);
});

test('a body that other code has read is used if it is in request.body, and is refused otherwise', async (t) => {
  const lines = [];
  const listener = createRenderer({ getComponent: (name) => components[name], loggerInstance: { log: (level, message) => lines.push(message) } });
  const server = createServer(async (request, response) => {
    const read = await json(request);
    if (request.headers['x-keep']) request.body = read;
    listener(request, response);
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { post, results } = client(`http://127.0.0.1:${server.address().port}`);
  assert.equal((await results(hello, { headers: { ...JSON_TYPE, 'x-keep': '1' } })).a.success, true);
  assert.equal((await post(hello)).status, 500);
  assert.match(lines.at(-1), /with 500: other code has read the body/);
});

test('a client that sends Expect: 100-continue gets a 100', async (t) => {
  const { url } = await serve(t, { components });
  const body = JSON.stringify(hello);
  const head = `POST /batch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
  const socket = connect(new URL(url).port, '127.0.0.1');
  socket.write(head);
  const [first] = await once(socket, 'data');
  assert.equal(String(first), 'HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(body);
  const [second] = await once(socket, 'data');
  assert.match(String(second), /^HTTP\/1\.1 200 OK/);
  socket.destroy();
});

test('a renderer without getComponent is refused with Hypernova\'s message', () => {
  const message = 'Hypernova requires a `getComponent` property and it must be a function';
  for (const config of [{}, { getComponent: 'Hello' }, undefined]) assert.throws(() => createRenderer(config), { name: 'TypeError', message });
});

test('without a logger of the application, lines go to stdout and stderr by their level', async (t) => {
  const [out, err] = ['log', 'error'].map((name) => t.mock.method(console, name, () => {}));
  const lines = (mock) => mock.mock.calls.map(({ arguments: [line] }) => line);
  const all = await serve(t, { components, loggerInstance: undefined, bodyParser: { strict: false } });
  await all.post('{bad');
  const few = await serve(t, { components, loggerInstance: undefined, logger: { level: 'warn' } });
  await few.post('{bad');
  assert.deepEqual(lines(err), ['warn: bodyParser.strict is not supported and has no effect']);
  assert.equal(lines(out).length, 1);
  assert.match(lines(out)[0], /^info: a batch was refused with 400: /);
});

/** Sends these bytes, and returns everything that comes until the server closes the connection. */
async function raw(url, text) {
  const socket = connect(new URL(url).port, '127.0.0.1');
  socket.write(text);
  const chunks = await socket.toArray();
  return Buffer.concat(chunks).toString();
}
