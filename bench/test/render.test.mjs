// RESULTS.md from fixtures. `node bench/test/render.test.mjs --write` writes the file, which must be read before a
// commit.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readResults, render } from '../render.mjs';

const BENCH = fileURLToPath(new URL('..', import.meta.url));

const ALL = ['proxy', 'tail', 'overload', 'deploys', 'idle', 'render', 'photos', 'tls', 'websockets', 'cache', 'memcached', 'lookups', 'any-app', 'many-apps'];
const EXPECTED = new URL('fixtures/RESULTS.md', import.meta.url);
const fixture = (name) => JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), 'utf8'));

if (process.argv.includes('--write')) writeFileSync(EXPECTED, render(ALL.map(fixture)));

test('the fixtures render as expected: verdicts, spreads, errors, answers that never came', () => {
  assert.equal(render(ALL.map(fixture)), readFileSync(EXPECTED, 'utf8'));
});

test('RESULTS.md is what bench/results renders to; if not: node bench/render.mjs', () => {
  const file = join(BENCH, 'RESULTS.md');
  const results = readResults(BENCH);
  assert.equal(existsSync(file), results.length > 0);
  if (results.length > 0) assert.equal(readFileSync(file, 'utf8'), render(results));
});

test('a missed target is called not met', () => {
  const slow = fixture('proxy');
  for (const row of slow.rows) if (row.peer === 'hostler') row.cpu_ns *= 2;
  assert.equal(render([slow]).match(/\*\*not met\*\*/g).length, 8);
});

test('a run without Hostler has no verdict', () => {
  for (const name of ['proxy', 'overload', 'deploys', 'render', 'photos', 'tls', 'websockets', 'cache', 'memcached', 'lookups']) {
    const peersOnly = fixture(name);
    peersOnly.rows = peersOnly.rows.filter(({ peer }) => peer !== 'hostler');
    peersOnly.peers = peersOnly.peers.filter((peer) => peer !== 'hostler');
    const text = render([peersOnly]);
    assert.doesNotMatch(text, /\bmet\b|NaN|undefined/);
    assert.match(text, /not measured/);
  }
});

test('one round above the peer makes "below Node\'s cluster" fail', () => {
  const tail = fixture('tail');
  assert.match(render([tail]), /below Node.*\| met \|/);
  tail.rows.find(({ peer, load, round }) => peer === 'hostler' && load === 0.7 && round === 1).p99_us = 90_000;
  assert.match(render([tail]), /below Node.*\| \*\*not met\*\* \|/);
});

test('the goodput is a median, and the recovery is that of the slowest round', () => {
  const overload = fixture('overload');
  assert.match(render([overload]), /goodput.*\| met \|\n.*normal.*\| met \|/);
  const own = overload.rows.filter(({ peer }) => peer === 'hostler');
  own[1].recovery_s = null;
  for (const row of own) row.overload.completed = 5600;
  assert.match(render([overload]), /goodput.*0\.93.*\| \*\*not met\*\* \|\n.*normal.*\| \*\*not met\*\* \|/);
});

test('one failed request is enough for a deploy to fail', () => {
  const deploys = fixture('deploys');
  assert.match(render([deploys]), /0 failed \| met/);
  deploys.rows.find(({ peer }) => peer === 'hostler').refused = 1;
  assert.match(render([deploys]), /1 failed \| \*\*not met/);
});

test('the throughput is a median for each island, and bursts have the p99 of their own requests', () => {
  const islands = fixture('render');
  assert.match(render([islands]), /16 homes \(243 elements\) \| 1\.60 .*\| met \|\n.*a button \(1 element\) \| 2\.00 .*\| met \|\n.*p99 in bursts \| 0\.25 .*\| met \|/);
  for (const row of islands.rows) if (row.peer === 'hostler' && row.island === 'button') row.requests /= 2;
  for (const row of islands.rows) if (row.peer === 'hostler' && row.during) row.during.p99_us = null;
  assert.match(render([islands]), /16 homes.*\| met \|\n.*a button.*\| \*\*not met\*\* \|\n.*p99 in bursts.*\| \*\*not met\*\* \|/);
});

test('one incomplete burst fails the target, and so does a median above the limit', () => {
  const photos = fixture('photos');
  assert.equal(render([photos]).match(/\| met \|/g).length, 4);
  const own = photos.rows.filter(({ peer, count }) => peer === 'hostler' && count === 500);
  own[0].ok = 499;
  assert.match(render([photos]), /500 at once: requests without a redirect \| 1 \| 0 \| \*\*not met/);
  for (const row of own) row.took_us *= 1.2;
  assert.match(render([photos]), /500 at once: time.*<= 1\.2 \| \*\*not met/);
});

test('TLS is compared with the better peer, WebSockets with nginx', () => {
  const tls = fixture('tls');
  assert.equal(render([tls]).match(/\| met \|/g).length, 5);
  for (const row of tls.rows) if (row.peer === 'haproxy' && row.cell === 'full') row.cpu_ns *= 0.7;
  assert.match(render([tls]), /full handshake \| 1\.27.*\| \*\*not met\*\* \|/);
  const sockets = fixture('websockets');
  assert.equal(render([sockets]).match(/\| met \|/g).length, 2);
  sockets.rows[0].echoed -= 1;
  for (const row of sockets.rows) if (row.peer === 'hostler') row.cpu_ns *= 1.5;
  assert.match(render([sockets]), /\*\*not met\*\*[^]*\*\*1 messages never came back/);
});

test('a hit is compared with the better cache, and a burst counts each render', () => {
  const cache = fixture('cache');
  assert.equal(render([cache]).match(/\| met \|/g).length, 4); // three hits, and a render for each burst
  for (const row of cache.rows) if (row.peer === 'varnish' && row.cell === '1 kB') row.cpu_ns /= 4;
  cache.rows.find(({ peer, cell }) => peer === 'hostler' && cell === 'burst').renders += 1;
  assert.match(render([cache]), /1 kB, one page .*\| \*\*not met\*\* \|[^]*Hostler \| 1\.17 \| \*\*not met\*\* \|/);
});

test('hits with too little memory are shown beside the memory that each cache used', () => {
  const text = render([fixture('cache')]);
  assert.match(text, /memory used with a limit of 64 MB, in MB \| 82\.0 .* \| 130\.0 .* \| 130\.0 /);
  assert.match(text, /of it files \| 0\.0 .* \| 110\.0 /);
  assert.match(text, /hits possible in as many bytes, % \| 83\.8 .* \| 93\.1 /);
});

test('one failed request fails the memcached target', () => {
  const memcached = fixture('memcached');
  assert.equal(render([memcached]).match(/\| 0 \| met \|/g).length, 6);
  memcached.rows.find(({ cell }) => cell === 'hung').misses.errors = { status: 1 };
  assert.match(render([memcached]), /never answers \|.*\| 1 \| \*\*not met\*\* \|/);
});

test('lookups have medians, and the longest wait is that of the worst round', () => {
  const lookups = fixture('lookups');
  const text = render([lookups]);
  assert.match(text, /byzip\/97209` \| 0\.94 .*\| met \| 4\.2\d .*\| met \|/);
  assert.match(text, /`, 20,000 addresses \| 0\.86 .*\| \*\*not met\*\* \| 4\.1/);
  assert.match(text, /Hostler \| 0\.20 .*\| 0\.40 .*\| met \|.*\| 62 .*\| met \|/);
  lookups.rows.findLast(({ peer, cell }) => peer === 'hostler' && cell === 'ab').failed = 1;
  for (const row of lookups.rows) if (row.peer === 'hostler' && row.cell === 'half') row.p99_us = null;
  assert.match(render([lookups]), /Hostler \| 0\.20 .*\| – .*\| \*\*not met\*\* \|.*\| \*\*not met\*\* \|[^]*1 failed/);
});

test('the cost of geo_headers is the ratio within the same round', () => {
  assert.match(render([fixture('lookups')]), /without geo_headers \| 16\.0 µs; 12,500\/s \| 1 \|\n\| with geo_headers \| 17\.6 µs; 12,500\/s \| 1\.10 \(1\.10 \.\. 1\.10\) \|/);
});

test('stalls of the generator stay in p99, and are named beside it', () => {
  const lookups = fixture('lookups');
  const half = lookups.rows.filter(({ peer, cell }) => peer === 'hostler' && cell === 'half');
  for (const row of half) Object.assign(row, { p99_us: 14_000, stalled_intervals: 7, longest_stall_us: 51_000, real_time: false });
  const text = render([lookups]);
  assert.match(text, /Hostler \| 0\.20 .*\| 14\.00 .*\| \*\*not met\*\* \|/);
  assert.match(text, /Hostler \| 14\.00 .*\| 14 of 160 \| 51\.0 ms \| 0\.39 .* ms \| 0\.25 .*ms \|\n/);
  assert.match(text, /nothing read \| 0\.12 .*\| not measured \|\n/);
  assert.match(text, /\*\*without real-time priority/);
});

test('one refusal more than with the best fixed number fails, and so does a ratio outside of 5 %', () => {
  const any = fixture('any-app');
  const text = render([any]);
  assert.equal(text.match(/\| met \|/g).length, 11);
  assert.match(text, /cold flood: requests\/s \|.*\| 0\.89 .*\| \*\*not met\*\* \|\n.*cold flood: p50 .*\| \*\*not met\*\* \|/);
  for (const row of any.rows) if (row.peer === 'auto' && row.cell === 'wait200') row.ok *= 0.9;
  any.rows.find(({ peer, cell }) => peer === 'auto' && cell === 'streams').lost = 1;
  assert.match(render([any]), /waits 200 ms: requests\/s .*\*\*not met\*\*[^]*event streams: requests without a 2xx response \|.*\| 1 and 0 \| not more \| \*\*not met/);
});

test('an app is compared with the fixed number of the lowest p99', () => {
  const any = fixture('any-app');
  const ratio = /mixed \| Hostler, best fixed number \| \S+ \(.*?\) \| (\S+)/;
  assert.equal(ratio.exec(render([any]))[1], '1.03');
  for (const row of any.rows) if (row.cell === 'mixed' && row.concurrency === 64) Object.assign(row, { p50_us: 20_000, p99_us: 60_000 });
  assert.equal(ratio.exec(render([any]))[1], '2.05');
});

test('an app without both forms of Hostler has no verdict', () => {
  const peersOnly = fixture('any-app');
  for (const name of ['rows', 'peers']) peersOnly[name] = peersOnly[name].filter((one) => !['auto', 'fixed'].includes(one.peer ?? one));
  const text = render([peersOnly]);
  assert.doesNotMatch(text, /\bmet\b|NaN|undefined/);
  assert.match(text, /not measured/);
});
