// The handling of every response or failure of Flickr. Each case is an id of the stand-in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freePort } from '@hostler/testkit';
import { KEY, startService, startUpstream } from './kit.mjs';

const upstream = await startUpstream();
const patient = await startService(upstream);
const hasty = await startService(upstream, { TRY_TIMEOUT_MS: '2000' }); // a machine that runs all tests at once is slow
const callsOf = (id) => upstream.calls.filter((call) => call.id === id).length;

const CASES = [
  ['unknown', 404, 'unknown_photo', 1],
  ['fault-private', 403, 'private_photo', 1],
  ['fault-unavailable', 503, 'upstream_busy', 1],
  ['fault-write', 503, 'upstream_busy', 1],
  ['fault-http503', 503, 'upstream_busy', 1],
  ['fault-key', 500, 'misconfigured', 1],
  ['fault-format', 500, 'misconfigured', 1],
  ['fault-url', 502, 'upstream_invalid', 1],
  ['fault-code', 502, 'upstream_invalid', 1],
  ['fault-http500', 502, 'upstream_invalid', 1],
  ['fault-redirect', 502, 'upstream_invalid', 1],
  ['fault-html', 502, 'upstream_invalid', 1],
  ['fault-script', 502, 'upstream_invalid', 1],
  ['fault-cut', 502, 'upstream_invalid', 1],
  ['fault-null', 502, 'upstream_invalid', 1],
  ['fault-nostat', 502, 'upstream_invalid', 1],
  ['fault-nosizes', 502, 'upstream_invalid', 1],
  ['fault-types', 502, 'upstream_invalid', 1],
  ['fault-endless', 502, 'upstream_invalid', 1],
  ['fault-truncated', 502, 'upstream_invalid', 1],
  ['fault-foreign', 502, 'upstream_invalid', 1],
  ['fault-user', 502, 'upstream_invalid', 1],
  ['fault-javascript', 502, 'upstream_invalid', 1],
  ['fault-silent', 504, 'upstream_timeout', 1],
  ['fault-drip', 504, 'upstream_timeout', 1],
  ['fault-reset', 502, 'upstream_unreachable', 2],
];

for (const [id, status, code, calls] of CASES) {
  test(`${id}: ${status} ${code}, after ${calls === 1 ? 'one try' : 'two tries'}`, async () => {
    const service = status === 504 ? hasty : patient;
    const answer = await service.get(`/view/${id}.json`);
    assert.equal(answer.status, status);
    assert.equal(answer.json().error, code);
    assert.equal(callsOf(id), calls);
    assert.equal(answer.headers.get('cache-control'), status < 500 ? 'public, max-age=60' : 'no-store');
    assert.equal(answer.headers.has('retry-after'), status === 503);
    assert.equal(answer.headers.has('location'), false);
    assert.equal((await service.get(`/view/${id}`)).status, status);
  });
}

test('a connection that breaks before the answer is tried once more', async () => {
  assert.equal((await patient.get('/view/fault-reset_once-a')).status, 302);
  assert.equal(callsOf('fault-reset_once-a'), 2);
});

test('an http URL of an allowed host becomes https', async () => {
  assert.equal((await patient.get('/view/fault-insecure')).headers.get('location'), 'https://live.staticflickr.com/1/1_o.jpg');
});

test('both tries together have a time limit', async () => {
  const own = await startService(upstream, { LOOKUP_TIMEOUT_MS: '300' });
  assert.equal((await own.get('/view/fault-silent-whole')).status, 504);
});

test('an unreachable upstream is a 502', async () => {
  const unreachable = await startService({ url: `http://127.0.0.1:${await freePort()}` });
  const answer = await unreachable.get('/view/1.json');
  assert.equal(answer.status, 502);
  assert.equal(answer.json().error, 'upstream_unreachable');
});

test('after a 429 clients get Retry-After, and Flickr gets no request until then', async () => {
  const own = await startService(upstream, { LONGEST_PAUSE_SECONDS: '3600' });
  const busy = await own.get('/view/fault-busy.json');
  assert.equal(busy.status, 503);
  assert.equal(busy.headers.get('retry-after'), '7');
  const next = await own.get('/view/77001');
  assert.equal(next.status, 503);
  assert.ok(Number(next.headers.get('retry-after')) >= 1);
  assert.equal(callsOf('77001'), 0);
});

test('a 429 for one photo does not delay requests for others', async () => {
  const own = await startService(upstream);
  assert.equal((await own.get('/view/fault-busy-sample')).headers.get('retry-after'), '7');
  assert.equal((await own.get('/view/77002')).status, 302);
});

test('a 429 may have a date, or no Retry-After', async () => {
  const dated = await (await startService(upstream)).get('/view/fault-busy_until');
  const wait = Number(dated.headers.get('retry-after'));
  assert.ok(wait >= 1 && wait <= 91, `${wait}`);
  const silent = await (await startService(upstream)).get('/view/fault-busy_silent');
  assert.equal(silent.headers.get('retry-after'), '30');
});

test('an exhausted quota is passed on as 503 with the remaining time', async () => {
  const strict = await startUpstream({ perHour: 2 });
  const own = await startService(strict);
  assert.equal((await own.get('/view/1')).status, 302);
  assert.equal((await own.get('/view/2')).status, 302);
  const third = await own.get('/view/3');
  assert.equal(third.status, 503);
  assert.ok(Number(third.headers.get('retry-after')) > 3500);
  assert.equal((await own.get('/view/1')).status, 302);
});

test('the API key is in no answer and in no log line, and an invalid key is logged', async () => {
  const paths = ['/', '/view/1', ...CASES.flatMap(([id]) => [`/view/${id}`, `/view/${id}.json`])];
  for (const path of paths) {
    const { headers, text } = await hasty.get(path);
    assert.ok(!JSON.stringify([...headers, text]).includes(KEY), path);
  }
  const refused = await startService(upstream, { FLICKR_API_KEY: `${KEY}-revoked` });
  assert.equal((await refused.get('/view/5.json')).json().error, 'misconfigured');
  assert.equal((await refused.get('/view/6.json')).status, 500);
  await refused.says(/NO LOOKUP WORKS: Flickr refuses FLICKR_API_KEY/);
  await patient.says(/lookup of fault-reset failed: upstream_unreachable \(ECONNRESET\)/);
  await refused.ends();
  assert.equal(refused.log.match(/NO LOOKUP WORKS/g).length, 1);
  for (const { log } of [patient, hasty, refused]) {
    assert.ok(!log.includes(KEY));
    assert.ok(!log.includes('internal error'), log);
  }
});
