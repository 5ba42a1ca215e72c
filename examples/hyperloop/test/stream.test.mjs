// The responses on the wire: statuses, headers, and the order in which a page arrives. Without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@hostler/testkit';
import { startApi } from './support/api.mjs';
import { startPage } from './support/process.mjs';
import { reader } from './support/reader.mjs';

test('the list is complete in the HTML, and names its filters', async (t) => {
  const { page } = await site(t);
  const answer = await fetch(`${page.url}/?kind=cabin&order=cheap`);
  const html = await answer.text();
  assert.equal(answer.status, 200);
  assert.match(html, /^<!DOCTYPE html>/);
  assert.match(html, /<h2 id="count"[^>]*>28 stays</);
  assert.equal(html.split('<li class="card">').length - 1, 20);
  assert.equal(html.includes('hidden id="S:'), false, 'nothing of the list waits for a script');
  const prices = [...html.matchAll(/<b>€(\d+)<\/b> a night/g)].map(([, price]) => Number(price));
  assert.deepEqual(prices, prices.toSorted((one, other) => one - other));
});

test('a stay is sent before its reviews are there, and they follow in the same answer', async (t) => {
  const { api, page } = await site(t);
  const reviews = api.hold('/stays/6/reviews');
  const calendar = api.hold('/stays/6/calendar');
  const text = reader(await fetch(`${page.url}/6`));

  const shell = await text.until('</footer>');
  assert.match(shell, /<h1[^>]*>Fuchsia Cabin<\/h1>/);
  assert.ok(shell.includes('What guests say') && !shell.includes('class="verdict"'));
  calendar.release();
  assert.ok(!(await text.until('data-answer="/stays/6/calendar"')).includes('class="verdict"'), 'each part comes by itself');
  reviews.release();
  const whole = await text.rest();
  assert.ok(whole.indexOf('class="month"') < whole.indexOf('class="verdict"'));
  assert.match(whole, /<\/html>$/);
});

test('a crawler gets the whole page at once', async (t) => {
  const { page } = await site(t);
  for (const [path, agent] of [['/6?bot', 'somebody'], ['/6', 'Mozilla/5.0 (compatible; Googlebot/2.1)']]) {
    const html = await (await fetch(page.url + path, { headers: { 'user-agent': agent } })).text();
    assert.ok(html.includes('class="verdict"') && !html.includes('class="waiting"'), path);
  }
});

test('a page requests each API resource once, and a broken connection is retried once', async (t) => {
  const { api, page } = await site(t);
  api.breakOnce('/stays/6');
  const answer = await fetch(`${page.url}/6`);
  await answer.text();
  assert.equal(answer.status, 200);
  assert.deepEqual(api.asked.toSorted(), ['/stays/6', '/stays/6', '/stays/6/calendar', '/stays/6/reviews']);
});

test('an unknown URL gets a 404 page', async (t) => {
  const { page } = await site(t);
  for (const path of ['/999', '/0', '/6/', '/6/x', '/x', '/__proto__', '/%3Cscript%3E', '//evil.example/6', '/6%00', '/%E0%A4%A']) {
    const answer = await fetch(page.url + path);
    const html = await answer.text();
    assert.equal(answer.status, 404, path);
    assert.ok(html.includes('Nothing here') && !html.includes('<script>'), path);
  }
  assert.equal((await fetch(`${page.url}/assets/../server.mjs`)).status, 404);
  assert.equal((await fetch(`${page.url}/assets/%2e%2e%2fserver.mjs`)).status, 404);
});

test('a page that fails is a 500 with the shell, without the reason', async (t) => {
  const { api, page } = await site(t);
  api.alter('/stays/6', { body: { id: 6, name: 'Secret name' } });
  const answer = await fetch(`${page.url}/6`);
  const html = await answer.text();
  assert.equal(answer.status, 500);
  assert.match(html, /<html lang="en" data-base="" data-from="shell">/);
  for (const secret of ['Secret name', 'Cannot read', 'server.mjs', 'node_modules']) assert.ok(!html.includes(secret), secret);
  await eventually('the log to say why', () => page.log.some((line) => line.includes('TypeError')));
});

test('a part that fails leaves the rest of the page complete', async (t) => {
  const { api, page } = await site(t);
  api.alter('/stays/6/reviews', { body: { count: 3, secret: 'hush' } });
  const answer = await fetch(`${page.url}/6`);
  const html = await answer.text();
  assert.equal(answer.status, 200);
  assert.ok(html.includes('class="month"') && html.includes('Fuchsia Cabin'));
  assert.ok(html.includes('"broken"') && !html.includes('hush') && !html.includes('Cannot read'));
});

test('an API that is down, fails or sends invalid answers gives an uncached 503 with an explanation', async (t) => {
  const { api, page } = await site(t, { API_TIMEOUT: '200' });
  const isHonest = async (path) => {
    const answer = await fetch(page.url + path);
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get('retry-after'), '5');
    assert.match(answer.headers.get('cache-control'), /no-store/);
    assert.match(await answer.text(), /Our stays cannot be reached/);
  };
  api.alter('/stays/6', { status: 500, body: { error: 'internal error' } });
  await isHonest('/6');
  const slow = api.hold('/stays/7');
  await isHonest('/7');
  slow.release();
  await api.close();
  await isHonest('/');
});

test('late parts are left to the browser, and the answer ends', async (t) => {
  const { api, page } = await site(t, { RENDER_TIMEOUT: '3000' });
  const reviews = api.hold('/stays/6/reviews');
  const html = await (await fetch(`${page.url}/6`)).text();
  reviews.release();
  assert.ok(!html.includes('class="verdict"'));
  assert.ok(html.includes('"late"') && html.includes('Fuchsia Cabin'));
  assert.match(html, /<\/html>$/);
});

test('the time limit of a late part starts with the page', async (t) => {
  const { api, page } = await site(t, { RENDER_TIMEOUT: '500' });
  const needed = api.hold('/stays/6');
  const reviews = api.hold('/stays/6/reviews');
  const answer = fetch(`${page.url}/6`);
  await Promise.all([needed.arrived, reviews.arrived]);
  const began = performance.now();
  await eventually('more than twice the time of a render to be over', () => performance.now() - began > 1200);
  needed.release();
  const html = await (await answer).text();
  assert.ok(html.includes('"late"'), 'the browser is told to ask, not that there are no reviews');
  assert.match(page.log.join(), /left to the browser after 500 ms/);
});

test('a render ends when its client leaves', async (t) => {
  const { api, page } = await site(t);
  const reviews = api.hold('/stays/6/reviews');
  const client = new AbortController();
  const answer = await fetch(`${page.url}/6`, { signal: client.signal });
  await reviews.arrived;
  client.abort();
  await reviews.left; // the page's server has cancelled its own request
  await assert.rejects(answer.text());
  const first = api.hold('/stays/7');
  const impatient = new AbortController();
  const none = assert.rejects(fetch(`${page.url}/7`, { signal: impatient.signal }));
  await first.arrived;
  impatient.abort();
  await Promise.all([none, first.left]);
  assert.deepEqual(page.log, [], 'and nothing of it is an error');
});

test('text from all sources is escaped', async (t) => {
  const { api, page } = await site(t);
  const evil = '</script><script>alert(1)</script><img src=x onerror=alert(1)>';
  const real = await (await fetch(`${api.url}/stays/6`)).json();
  api.alter('/stays/6', { body: { ...real, name: evil, about: [evil] } });
  for (const path of [`/?q=${encodeURIComponent(evil)}`, `/?kind=${encodeURIComponent(evil)}`, '/6']) {
    const html = await (await fetch(page.url + path)).text();
    assert.ok(!html.includes('<script>alert') && !html.includes('<img'), path);
  }
  const html = await (await fetch(`${page.url}/6`)).text();
  const carried = /data-answer="\/stays\/6">(.*?)<\/script>/.exec(html)[1];
  assert.equal(JSON.parse(carried).value.name, evil);
});

test('the content security policy allows only the page\'s own scripts, also for HEAD', async (t) => {
  const { page } = await site(t);
  const answer = await fetch(page.url);
  const html = await answer.text();
  const nonce = /script-src 'nonce-([^']+)'/.exec(answer.headers.get('content-security-policy'))[1];
  const scripts = [...html.matchAll(/<script(?! type="application\/json")[^>]*>/g)].map(([tag]) => tag);
  assert.ok(scripts.length > 0 && scripts.every((tag) => tag.includes(`nonce="${nonce}"`)));
  assert.doesNotMatch(html, /<[a-z][^>]* (on\w+|style)=/i);
  assert.match(answer.headers.get('server-timing'), /^api;dur=[\d.]+, shell;dur=[\d.]+$/);
  assert.equal(answer.headers.get('etag'), null);

  for (const [path, status] of [['/', 200], ['/6', 200], ['/999', 404]]) {
    const head = await fetch(page.url + path, { method: 'HEAD' });
    assert.equal(head.status, status);
    assert.match(head.headers.get('content-type'), /^text\/html/);
    assert.equal(await head.text(), '');
  }
  const post = await fetch(page.url, { method: 'POST', body: 'x' });
  assert.equal(post.status, 405);
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
});

test('scripts and styles are compressed and immutable', async (t) => {
  const { page } = await site(t, { BASE_PATH: '/stays' });
  const html = await (await fetch(`${page.url}/stays`)).text();
  const paths = [...html.matchAll(/(?:src|href)="(\/stays\/assets\/[^"]+)"/g)].map(([, path]) => path);
  assert.ok(paths.some((path) => path.endsWith('.js')) && paths.some((path) => path.endsWith('.css')));
  for (const path of paths) {
    const answer = await fetch(page.url + path, { headers: { 'accept-encoding': 'gzip, br' } });
    assert.match(answer.headers.get('cache-control'), /immutable/);
    assert.equal(answer.headers.get('content-encoding'), 'br', path);
    const plain = await fetch(page.url + path, { headers: { 'accept-encoding': 'identity' } });
    assert.equal(await plain.text(), await answer.text());
  }
  assert.ok(!/ (?:href|action)="\/(?!stays)/.test(html), 'every link stays below the path');
});

test('a wrong setting stops the start, by name', async (t) => {
  for (const [name, value] of [['BASE_PATH', 'stays/'], ['API_URL', 'nowhere'], ['API_TIMEOUT', '2s']]) {
    await assert.rejects(startPage(t, { api: { url: 'http://127.0.0.1:1/api' }, env: { [name]: value } }), new RegExp(`${name} must`));
  }
});

test('SIGTERM ends the process after the running requests', async (t) => {
  const { api, page } = await site(t);
  const reviews = api.hold('/stays/6/reviews');
  const text = reader(await fetch(`${page.url}/6`));
  await text.until('</footer>');
  process.kill(page.pid, 'SIGTERM');
  await eventually('it to take no more', () => fetch(page.url).then(() => false, () => true));
  reviews.release();
  assert.match(await text.rest(), /class="verdict".*<\/html>$/s);
  assert.deepEqual(await page.ended, [0, null]);
});

async function site(t, env) {
  const api = await startApi(t);
  return { api, page: await startPage(t, { api, env }) };
}
