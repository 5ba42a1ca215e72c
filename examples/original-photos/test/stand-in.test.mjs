// Compares the stand-in with Flickr's documentation of its API.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { test } from 'node:test';
import { KEY, get, startUpstream } from './kit.mjs';

const { url } = await startUpstream();
const ask = (query, path = '/services/rest/') =>
  get(`${url}${path}?${new URLSearchParams({ method: 'flickr.photos.getSizes', api_key: KEY, format: 'json', nojsoncallback: '1', photo_id: '2610', ...query })}`);

test('sizes have labels, URLs and media, and only the square one has numbers', async () => {
  const { stat, sizes } = (await ask({})).json();
  assert.equal(stat, 'ok');
  assert.deepEqual(Object.keys(sizes), ['canblog', 'canprint', 'candownload', 'size']);
  assert.deepEqual(Object.keys(sizes.size[0]), ['label', 'width', 'height', 'source', 'url', 'media']);
  assert.deepEqual(sizes.size.map(({ width }) => typeof width), ['number', ...sizes.size.slice(1).map(() => 'string')]);
  assert.equal(sizes.size.at(-1).label, 'Original');
});

test('failures are stat, code and message, with status 200', async () => {
  for (const [query, code, message] of [
    [{ photo_id: 'x' }, 1, 'Photo not found'],
    [{ photo_id: 'fault-private' }, 2, 'Permission denied'],
    [{ api_key: 'other' }, 100, /^Invalid API Key/],
    [{ method: 'flickr.photos.doesNotExist' }, 112, 'Method "flickr.photos.doesNotExist" not found'],
  ]) {
    const answer = await ask(query);
    const said = answer.json();
    assert.equal(answer.status, 200);
    assert.deepEqual([said.stat, said.code], ['fail', code]);
    assert.match(said.message, typeof message === 'string' ? new RegExp(`^${message}$`) : message);
  }
});

test('without nojsoncallback JSON is a script, without a format it is XML, another format is code 111', async () => {
  assert.match((await ask({ nojsoncallback: '0' })).text, /^jsonFlickrApi\(\{.*\}\)$/);
  assert.match((await ask({ nojsoncallback: '0', jsoncallback: 'mine' })).text, /^mine\(/);
  assert.match((await ask({ format: 'rest' }, '/services/rest')).text, /<rsp stat="ok">\n<sizes canblog="0" canprint="0" candownload="1">\n<size label="Square" width="75"/);
  assert.match((await ask({ format: 'xyz' })).text, /<err code="111" msg="Format &#34;xyz&#34; not found" \/>/);
});

test('a Host or path that is part of no address gets a 400, and does not end the process', async () => {
  const { hostname, port } = new URL(url);
  for (const [host, path] of [['1.2.3.4.5', '/services/rest/'], ['localhost', '//[']]) {
    const [answer] = await once(request({ hostname, port, path, headers: { host } }).end(), 'response'); // fetch sets Host itself
    answer.resume();
    assert.equal(answer.statusCode, 400, host + path);
  }
});

test('a key has a quota of calls for each hour', async () => {
  let now = 0;
  const strict = await startUpstream({ keys: ['a', 'b'], perHour: 2, now: () => now });
  const status = async (key) => (await get(`${strict.url}/services/rest/?method=flickr.photos.getSizes&photo_id=1&api_key=${key}`)).status;
  assert.deepEqual([await status('a'), await status('a'), await status('a'), await status('b')], [200, 200, 429, 200]);
  now = 3_600_001;
  assert.equal(await status('a'), 200);
});

test('every size that is listed is a picture of that size', async () => {
  const { sizes } = (await ask({ photo_id: '52551849781' })).json();
  for (const { source, width, height } of sizes.size) {
    const answer = await get(source);
    assert.equal(answer.headers.get('content-type'), 'image/svg+xml');
    assert.match(answer.text, new RegExp(`^<svg xmlns="[^"]+" width="${width}" height="${height}"`));
    assert.match(answer.text, /stand-in/);
  }
  assert.equal((await get(`${url}/services/pictures/2610_x.svg`)).status, 404);
});
