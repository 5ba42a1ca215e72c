// What a client sees: redirects, sizes, methods, addresses, the page. Also how the service starts and stops.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { eventually, openBrowser } from '@hostler/testkit';
import { KEY, launch, startService, startUpstream } from './kit.mjs';

const upstream = await startUpstream();
const service = await startService(upstream);

test('a photo redirects to its original, which exists', async () => {
  const answer = await service.get('/view/52551849781');
  assert.equal(answer.status, 302);
  const source = answer.headers.get('location');
  assert.equal(source, `${upstream.url}/services/pictures/52551849781_o.svg`);
  const sizes = (await service.get('/view/52551849781.json')).json();
  const { width, height } = sizes.picture;
  assert.match(await (await fetch(source)).text(), new RegExp(`^<svg [^>]*width="${width}" height="${height}"`));
});

test('the sizes are JSON with numbers, even where Flickr sent text', async () => {
  const { id, picture, sizes, may } = (await service.get('/view/2610.json')).json();
  assert.equal(id, '2610');
  assert.deepEqual(may, { blog: false, print: false, download: true });
  assert.deepEqual(sizes[0], { label: 'Square', media: 'photo', width: 75, height: 75, source: `${upstream.url}/services/pictures/2610_s.svg`, page: `${upstream.url}/services/pictures/2610_s.svg#sq` });
  assert.ok(sizes.every(({ width, height }) => Number.isInteger(width) && Number.isInteger(height)));
  assert.deepEqual(picture, sizes.at(-1));
  assert.equal(picture.label, 'Original');
});

test('without an original the largest picture is used, and never a video', async () => {
  for (const id of ['fault-small', 'fault-video']) {
    const { picture, sizes } = (await service.get(`/view/${id}.json`)).json();
    const areas = sizes.filter(({ media }) => media === 'photo').map(({ width, height }) => width * height);
    assert.equal(picture.width * picture.height, Math.max(...areas));
    assert.equal((await service.get(`/view/${id}`)).headers.get('location'), picture.source);
  }
});

test('a browser gets a refusal as a page, with the id of the request', async () => {
  const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'x-request-id': '<abc>' };
  const page = await service.get('/view/unknown', { headers: browser });
  assert.equal(page.status, 404);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(page.headers.get('vary'), 'accept');
  assert.match(page.text, /Flickr knows no photo with this id\./);
  assert.match(page.text, /&#60;abc&#62;/);
  assert.doesNotMatch(page.text, /\{\{|undefined/);
  assert.match(page.headers.get('cache-control'), /^private, max-age=\d+$/, 'no other client may get the id');
  const json = await service.get('/view/unknown.json', { headers: browser });
  assert.equal(json.json().error, 'unknown_photo');
  const text = await service.get('/view/unknown');
  assert.match(text.headers.get('content-type'), /^text\/plain/);
  assert.match(text.headers.get('cache-control'), /^public, max-age=\d+$/);
});

test('a photo without any picture is a 404 as a redirect, and an empty list as JSON', async () => {
  assert.equal((await service.get('/view/fault-empty')).status, 404);
  assert.deepEqual((await service.get('/view/fault-empty.json')).json().sizes, []);
  const film = (await service.get('/view/fault-film.json')).json();
  assert.equal(film.picture, null);
  assert.deepEqual(film.sizes.map(({ label, width }) => [label, width]), [['Site MP4', 640], ['HD MP4', 1280], ['Video Original', null]]);
});

test('HEAD answers as GET does, without the body', async () => {
  for (const path of ['/view/2610', '/view/2610.json', '/', '/healthz', '/view/unknown']) {
    const [head, whole] = [await service.get(path, { method: 'HEAD' }), await service.get(path)];
    assert.equal(head.status, whole.status);
    assert.equal(head.headers.get('content-length'), whole.headers.get('content-length'));
    assert.equal(head.headers.get('location'), whole.headers.get('location'));
    assert.equal(head.text, '');
  }
});

test('other methods are refused with the list of allowed ones', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const answer = await service.get('/view/2610.json', { method });
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('allow'), 'GET, HEAD');
    assert.equal(answer.json().error, 'method_not_allowed');
  }
});

test('an invalid id is refused without a request to Flickr', async () => {
  const before = upstream.calls.length;
  for (const id of ['a.b', '1%2F2', 'x'.repeat(65), '1&api_key=2', "1'", '%00', '.json', '1/2']) {
    const answer = await service.get(`/view/${id}.json`);
    assert.equal(answer.status, 400, id);
    assert.equal(answer.json().error, 'bad_id');
    assert.match((await service.get(`/view/${id}`)).headers.get('content-type'), /^text\/plain|^application\/json/);
  }
  assert.equal(upstream.calls.length, before);
  assert.equal((await service.get('/elsewhere')).status, 404);
});

test('the form works without scripts', async () => {
  const answer = await service.get('/view/?id=%202610%20');
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.get('location'), '/view/2610');
  assert.equal((await service.get('/view/?id=//evil.example')).status, 400);
  assert.equal((await service.get('/healthz')).text, 'ok\n');
});

test('the page shows sizes and refusals, names the stand-in, and obeys its content security policy', async () => {
  const browser = await openBrowser();
  after(() => browser.close());
  const page = await browser.newPage();
  const complaints = [];
  page.on('console', (message) => message.type() === 'error' && !/status of 40/.test(message.text()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${service.base}/`);
  assert.match(await page.textContent('.notice'), /stand-in/);
  await page.fill('#id', '8391270110');
  await page.click('button');
  await page.waitForSelector('tr.best');
  assert.match(await page.textContent('tr.best'), /Original/);
  await eventually('the preview', () => page.$eval('img', (image) => image.complete && image.naturalWidth > 0));
  await page.click('text=fault-private');
  await page.waitForSelector('.error');
  assert.match(await page.textContent('.error'), /^403 /);
  assert.deepEqual(complaints, []);
});

test('invalid settings stop the start with an error that names them', async () => {
  for (const [env, message] of [
    [{}, /^FLICKR_API_KEY is missing/],
    [{ FLICKR_API_KEY: `${KEY} ` }, /^FLICKR_API_KEY has characters/],
    [{ FLICKR_API_KEY: KEY, FLICKR_URL: 'flickr' }, /^FLICKR_URL must be/],
    [{ FLICKR_API_KEY: KEY, FLICKR_URL: `https://x?api_key=${KEY}` }, /^FLICKR_URL must be/],
    [{ FLICKR_API_KEY: KEY, PHOTO_ORIGINS: '*' }, /^PHOTO_ORIGINS: "\*" is not an origin/],
    [{ FLICKR_API_KEY: KEY, UPSTREAM_CALLS: '0' }, /^UPSTREAM_CALLS must be a whole number from 1/],
    [{ FLICKR_API_KEY: KEY, TRY_TIMEOUT_MS: '5s' }, /^TRY_TIMEOUT_MS must be a whole number/],
    [{ FLICKR_API_KEY: KEY, PORT: new URL(service.base).port }, /^cannot listen on \d+: EADDRINUSE/],
  ]) {
    const child = launch({ PORT: '0', ...env });
    let said = '';
    child.stderr.on('data', (chunk) => (said += chunk));
    const [code] = await once(child, 'close');
    assert.equal(code, 1);
    assert.match(said, message);
    assert.equal(said.trim().split('\n').length, 1, said);
    assert.ok(!said.includes(KEY));
  }
});

test('SIGTERM ends the process after the running requests', async () => {
  const own = await startService(upstream);
  const answer = own.get('/view/fault-slow-term');
  await eventually('the call', () => upstream.calls.some(({ id }) => id === 'fault-slow-term'));
  own.process.kill('SIGTERM');
  assert.equal((await answer).status, 302);
  assert.deepEqual(await once(own.process, 'exit'), [0, null]);
});
