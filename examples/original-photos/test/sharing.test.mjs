// Lookups that are shared, cached, given up or queued, from both sides: the responses of clients, and the requests at
// Flickr.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@hostler/testkit';
import { startService, startUpstream } from './kit.mjs';

const upstream = await startUpstream({ latency: 200 });
const service = await startService(upstream);
const callsOf = (id) => upstream.calls.filter((call) => call.id === id);
const cacheStatus = ({ headers }) => headers.get('lookup-status');

test('five hundred equal lookups at once are one call', async () => {
  const answers = await Promise.all(Array.from({ length: 500 }, () => service.get('/view/500500')));
  assert.ok(answers.every(({ status }) => status === 302));
  assert.equal(callsOf('500500').length, 1);
  assert.equal(answers.filter((answer) => cacheStatus(answer) === 'fwd=miss').length, 1);
});

test('an answer is cached, and has its max-age', async () => {
  assert.equal(cacheStatus(await service.get('/view/1001')), 'fwd=miss');
  const again = await service.get('/view/1001.json');
  const [, left] = /^hit; ttl=(\d+)$/.exec(cacheStatus(again));
  assert.equal(again.headers.get('cache-control'), `public, max-age=${left}`);
  assert.ok(Number(left) > 500 && Number(left) <= 600);
  assert.equal(callsOf('1001').length, 1);
});

test('an unknown photo is cached for less time, and a failure is not cached', async () => {
  for (const id of ['unknown', 'fault-private']) {
    await service.get(`/view/${id}`);
    const kept = await service.get(`/view/${id}`);
    assert.ok(Number(/^hit; ttl=(\d+)$/.exec(cacheStatus(kept))[1]) <= 60);
    assert.equal(callsOf(id).length, 1);
  }
  await service.get('/view/fault-http500');
  await service.get('/view/fault-http500');
  assert.equal(callsOf('fault-http500').length, 2);
});

test('when Flickr fails, a stale answer is sent and marked', async () => {
  const own = await startService(upstream, { CACHE_SECONDS: '0' });
  assert.equal((await own.get('/view/fault-fail_later-a')).status, 302);
  const stale = await own.get('/view/fault-fail_later-a');
  assert.equal(stale.status, 302);
  assert.match(cacheStatus(stale), /^hit; ttl=-?\d+; detail=upstream_invalid$/);
  assert.equal(stale.headers.get('cache-control'), 'no-cache');
  assert.equal(callsOf('fault-fail_later-a').length, 2);
  await own.says(/lookup of fault-fail_later-a failed: upstream_invalid \(status 500\)/);
});

test('a deleted photo gets no stale answer', async () => {
  const own = await startService(upstream, { CACHE_SECONDS: '0' });
  assert.equal((await own.get('/view/fault-gone_later-a')).status, 302);
  assert.equal((await own.get('/view/fault-gone_later-a')).status, 404);
});

test('no answer is sent after its stale limit', async () => {
  const own = await startService(upstream, { CACHE_SECONDS: '0', CACHE_STALE_SECONDS: '0' });
  assert.equal((await own.get('/view/fault-fail_later-b')).status, 302);
  assert.equal((await own.get('/view/fault-fail_later-b')).status, 502);
});

test('a client that leaves ends its wait, and a lookup with other waiting clients continues', async () => {
  let tries = 0;
  await eventually('one call for both', async () => {
    const id = `fault-slow-shared-${(tries += 1)}`;
    const leaver = new AbortController();
    const left = service.get(`/view/${id}`, { signal: leaver.signal });
    await eventually('the call', () => callsOf(id).length === 1);
    const stays = service.get(`/view/${id}`);
    leaver.abort();
    await assert.rejects(left, { name: 'AbortError' });
    assert.equal((await stays).status, 302);
    // If the second client comes after the first one has left, it makes its own call. Then the test tries again.
    return callsOf(id).length === 1 && !callsOf(id)[0].left;
  });
});

test('a lookup without a waiting client is cancelled, and the next one starts again', async () => {
  const own = await startService(upstream);
  for (const count of [1, 2]) {
    const leaver = new AbortController();
    const left = own.get('/view/fault-silent-alone', { signal: leaver.signal });
    await eventually('the call', () => callsOf('fault-silent-alone').length === count);
    leaver.abort();
    await assert.rejects(left, { name: 'AbortError' });
    await eventually('the end of the call', () => callsOf('fault-silent-alone').every((call) => call.left));
  }
  assert.equal((await own.get('/view/3003')).status, 302);
  assert.ok(!own.log.includes('error'), own.log);
});

test('more lookups than may be made at once wait in line; none is refused', async () => {
  const narrow = await startUpstream({ latency: 20 });
  const own = await startService(narrow, { UPSTREAM_CALLS: '3' });
  const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => own.get(`/view/${7000 + i}`)));
  assert.ok(answers.every(({ status }) => status === 302));
  assert.equal(narrow.calls.length, 60);
  assert.ok(narrow.mostAtOnce <= 3, `${narrow.mostAtOnce} at once`);
});

test('no request is sent for a client that leaves the line', async () => {
  const narrow = await startUpstream();
  const own = await startService(narrow, { UPSTREAM_CALLS: '1' });
  const [first, second] = [new AbortController(), new AbortController()];
  const holds = own.get('/view/fault-silent-holds', { signal: first.signal });
  await eventually('the call', () => narrow.calls.length === 1);
  const waits = own.get('/view/8001', { signal: second.signal });
  const last = own.get('/view/8002');
  second.abort();
  await assert.rejects(waits, { name: 'AbortError' });
  first.abort();
  await assert.rejects(holds, { name: 'AbortError' });
  assert.equal((await last).status, 302);
  await own.get('/view/8003');
  assert.deepEqual(narrow.calls.map(({ id }) => id), ['fault-silent-holds', '8002', '8003']);
});
