// RESULTS.md from fixtures. `node bench/test/render.test.mjs --write` writes the file, which must be read before a
// commit.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readResults, render } from '../render.mjs';
import { reasons } from '../report/reasons.mjs';

const BENCH = fileURLToPath(new URL('..', import.meta.url));

const ALL = ['proxy', 'scale', 'tail', 'overload', 'deploys', 'idle', 'render', 'photos', 'tls', 'websockets', 'cache', 'memcached', 'lookups', 'any-app', 'many-apps'];
const EXPECTED = new URL('fixtures/RESULTS.md', import.meta.url);
const fixture = (name) => JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), 'utf8'));

/** One part without the first page. */
const section = (result) => render([result]).replace(/^[^]*?\n## Verdicts[^]*?\n## /, '## ');

/** The reasons are those of the real results, and the fixtures have none. */
function renderFixtures() {
  const kept = { ...reasons };
  for (const part of Object.keys(reasons)) delete reasons[part];
  try {
    return render(ALL.map(fixture));
  } finally {
    Object.assign(reasons, kept);
  }
}

if (process.argv.includes('--write')) writeFileSync(EXPECTED, renderFixtures());

test('the fixtures render as expected: verdicts, spreads, errors, answers that never came', () => {
  assert.equal(renderFixtures(), readFileSync(EXPECTED, 'utf8'));
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
  assert.equal(section(slow).match(/\*\*not met\*\*/g).length, 10);
});

test('rounds that disagree decide nothing, and neither do fewer than four', () => {
  const proxy = fixture('proxy');
  assert.match(section(proxy), /1 slot, c = 50 \| 0\.79 .*\| not decided: rounds disagree \|/);
  proxy.rows = proxy.rows.filter(({ round }) => round < 4);
  const text = section(proxy);
  assert.doesNotMatch(text, /\bmet\b/);
  assert.match(text, /64 slots, c = 50 \| 0\.75 .*\| not decided: too few rounds \|/);
});

test('the relay is compared only where no queue is needed', () => {
  const text = section(fixture('proxy'));
  assert.match(text, /64 slots, c = 50 .*\| 1\.07 \(1\.06 \.\. 1\.09\) \| met \|/);
  assert.match(text, /1 slot, c = 50 .*\| cannot queue \| – \|/);
});

test('the first page names each target that is not met with its reason, and each that is met', () => {
  const [tail, slow] = [fixture('tail'), fixture('proxy')];
  for (const row of slow.rows) if (row.peer === 'hostler') row.cpu_ns *= 2;
  reasons.proxy = { ...reasons.proxy, '1 slot, c = 50: CPU / HAProxy': 'because of the test' };
  const [page] = render([slow, tail]).split('## Proxy cost');
  assert.match(page, /19 targets: 7 met, 10 not met, 2 not decided\./);
  assert.match(page, /proxy \| 1 slot, c = 50: CPU \/ HAProxy \| 1\.5.* \| because of the test \|/);
  assert.match(page, /tail \| 7 of 9 \| load 0\.5: p99 \/ the ideal queue: 1\.05/);
  assert.match(page, /Not measured: scale, overload, /);
  assert.match(page, /not decided\. In `proxy`, `tail` a verdict needs rounds that agree\.\n/);
  assert.match(render([tail, fixture('cache'), fixture('idle')]), /In `tail` a verdict needs rounds that agree\. In `cache`, `idle` there are few rounds, and the median decides/);
});

test('a reason names no figure of another sitting without its day or its commit', () => {
  const sentences = Object.values(reasons).flatMap(Object.values).flatMap((text) => text.split(/(?<=\.) (?=[A-Z])/));
  for (const sentence of sentences.filter((one) => /\d\.\d|\bsitting\b/.test(one))) assert.match(sentence, /2026-\d\d-\d\d|commit [0-9a-f]{8}/);
});

test('the first page says where each part was measured, and marks what makes a figure doubtful', () => {
  const [one, two] = [fixture('proxy'), fixture('tail')];
  const first = () => render([one, two]).split('## Proxy cost')[0];
  assert.match(first(), /measured in one sitting\./);
  Object.assign(one, { sitting: 'a', took_s: 400 });
  Object.assign(two, { sitting: 'a', took_s: 260 });
  assert.match(first(), /in one sitting of 11 min\./);
  Object.assign(two, { sitting: 'b', commit: 'f'.repeat(40), dirty: true, binary: '/tmp/hostler', machine: { ...two.machine, cpu: 'another' } });
  assert.match(first(), /in 2 sittings\. .*on 2 different processors.*\*\*These parts were measured at 2 different commits\.\*\*.*uncommitted changes.*HOSTLER_BIN/);
  assert.match(first(), /tail \| `ffffffffffff` \(with uncommitted changes, HOSTLER_BIN\) \| another \|/);
});

test('a run without Hostler has no verdict', () => {
  for (const name of ['proxy', 'overload', 'deploys', 'render', 'photos', 'tls', 'websockets', 'cache', 'memcached', 'lookups']) {
    const peersOnly = fixture(name);
    peersOnly.rows = peersOnly.rows.filter(({ peer }) => peer !== 'hostler');
    peersOnly.peers = peersOnly.peers.filter((peer) => peer !== 'hostler');
    const text = section(peersOnly);
    assert.doesNotMatch(text, /\bmet\b|NaN|undefined/);
    assert.match(text, /not measured/);
  }
});

test('the tail is judged at each load, only by rounds that agree', () => {
  const tail = fixture('tail');
  const judged = () => section(tail).split('p99 of each peer')[0];
  assert.match(judged(), /\| 0\.5 \| 1\.05 .*\| met \| 0\.88 .*\| met \| 0\.53 .*\| met \| 0\.99 /);
  assert.match(judged(), /\| 0\.9 \| 1\.00 \(1\.00 \.\. 1\.20\) \| not decided: rounds disagree \|/);
  for (const row of tail.rows) if (row.peer === 'hostler' && row.load === 0.5) row.p99_us = null;
  assert.match(judged(), /\| 0\.5 \| – .*\| \*\*not met\*\* \|/);
});

test('short pages first are compared with the order of arrival, at the loads that have a target', () => {
  const tail = fixture('tail');
  const table = /Short pages first/;
  assert.doesNotMatch(section(tail), table); // an older result
  for (const row of tail.rows) Object.assign(row, { short: { p99_us: 10_000 }, long: { p99_us: 70_000 }, slowdown_p99: 20 });
  assert.doesNotMatch(section(tail), table);
  tail.peers.push('short');
  tail.titles.short = 'short first';
  const added = (slowdown) => tail.rows.filter(({ peer }) => peer === 'fifo').map((row) => ({ ...row, peer: 'short', long: { p99_us: null }, slowdown_p99: slowdown * row.slowdown_p99 }));
  const rows = tail.rows;
  tail.rows = [...rows, ...added(0.5)];
  const text = section(tail);
  assert.match(text, /load 0\.7: p99 of the slowdown, `short_first` \/ `fifo` \| 0\.50 \(0\.50 \.\. 0\.50\) \| <= 0\.6 \| met \|\n.*load 0\.9.*\| met \|/);
  assert.doesNotMatch(text, /load 0\.5: p99 of the slowdown/);
  assert.match(text, /\| 0\.7 \| short first \| 10\.0 [^|]*\| – [^|]*\| [^|]*\| 10\.0 [^|]*\| 0\.50 /);
  tail.rows = [...rows, ...added(0.7)];
  assert.match(section(tail), /load 0\.9: p99 of the slowdown.*\| \*\*not met\*\* \|/);
});

test('a fair queue is compared with the same load without it', () => {
  const scale = fixture('scale');
  assert.doesNotMatch(section(scale), /keys/); // an older result
  Object.assign(scale.variants, { keys: { keys: 10_000 }, 'keys, fair': { keys: 10_000, fair: 'header:X-Key', than: 'keys' } });
  const added = (peer, times) => scale.rows.filter((row) => row.peer === 'plain').map((row) => ({ ...row, peer, cpu_ns: times * row.cpu_ns }));
  const rows = [...scale.rows, ...added('keys', 1.2)];
  scale.rows = [...rows, ...added('keys, fair', 1.224)];
  assert.match(section(scale), /`queue\.fair`, 10,000 keys, 64 slots each, c = 50: CPU per request \| 1\.02 .*\| <= 1\.03 \| met \|/);
  assert.match(section(scale), /\| 50 \| 10,000 \| `header:X-Key` \| 14\.7 µs \|/);
  scale.rows = [...rows, ...added('keys, fair', 1.3)];
  assert.match(section(scale), /10,000 keys.*\| \*\*not met\*\* \|/);
});

test('goodput counts the time that was left for the workers, and a sleeping worker as a loss', () => {
  const overload = fixture('overload');
  assert.match(section(overload), /goodput .* \| 0\.97 .*\| met \|\n.*refusal.*\| 16\.4 .*\| \*\*not met\*\* \|\n.*normal.*\| met \|/);
  const own = overload.rows.filter(({ peer }) => peer === 'hostler');
  own[1].recovery_s = null;
  // Ten per cent fewer pages with the same CPU for each: the workers slept.
  for (const { overload: during } of own) for (const name of ['completed', 'completed_long', 'worker_main_ns', 'worker_cpu_ns']) during[name] *= 0.9;
  assert.match(section(overload), /goodput .*\| 0\.87 .*\| \*\*not met\*\* \|\n.*\n.*normal.*\| \*\*not met\*\* \|/);
});

test('a cost of refusals below zero decides nothing', () => {
  const overload = fixture('overload');
  for (const { peer, overload: during } of overload.rows) if (peer === 'hostler') during.proxy_cpu_ns = 0;
  assert.match(section(overload), /refusal.*\| -\d.*\| not decided: below zero in a round \|/);
});

test('a peer that answers only short pages has no more goodput', () => {
  const overload = fixture('overload');
  const share = () => Number(/Hostler \| (\d\.\d\d) /.exec(section(overload))[1]);
  const before = share();
  for (const { peer, overload: during } of overload.rows) if (peer === 'hostler') during.completed_long = 0;
  assert.ok(share() < 0.7 * before, `${share()}, before ${before}`);
});

test('HAProxy with a short queue stands beside that with a long one, if it was measured', () => {
  const overload = fixture('overload');
  assert.match(section(overload), /With a shorter `timeout queue` more would; that was not measured here\./);
  overload.peers.push('brief');
  overload.titles.brief = 'a short queue';
  overload.rows.push(...overload.rows.filter(({ peer }) => peer === 'chain').map((row) => ({ ...row, peer: 'brief' })));
  const text = section(overload);
  assert.equal(text.match(/^\| a short queue \|/gm).length, 2);
  assert.match(text, /as in the other row of HAProxy, more do\./);
  assert.doesNotMatch(text, /not measured here/);
});

test('the memory of an idle Hostler includes its guard, if that was measured', () => {
  const idle = fixture('idle');
  assert.match(section(idle), /1 worker: resident memory \| 12\.0 .*\| met \|[^]*without its guard/);
  for (const row of idle.rows) if (row.peer !== 'node') row.own_bytes = row.resident_bytes + 9e6;
  assert.match(section(idle), /1 worker: memory with the guard \| 21\.0 .*\| \*\*not met\*\* \|[^]*PSS/);
});

/** Four rounds in which 580 pages came before the end of 10 s, of a capacity of 58 a second. */
function crawlers() {
  const pages = Array.from({ length: 4 }, () => ({ short: 100, long: 25 }));
  const people = { ok: 100, planned: 100, in_time: 80, p50_us: 1000, p99_us: 2000 };
  const rows = [1, 2, 3, 4].map((round) => ({ round, peer: 'fair', alone: { p99_us: 1000 }, people: { ...people }, crawlers: { ok: 900, planned: 1000, pages } }));
  const settings = { rounds: 4, warmup: 1, during: 10, crawlers: { share: 2 }, people: { edges: 200, share: 0.3 }, patience: 10, limit: 6 };
  return { ...fixture('overload'), scenario: 'fair', peers: ['fair'], titles: { fair: 'fair' }, settings, capacity: { rate: 58, render_us: { short: 1000, long: 10_000 } }, rows };
}

test('people beside crawlers are judged by rounds that agree', () => {
  const fair = crawlers();
  assert.equal(section(fair).match(/\| met \|/g).length, 3);
  fair.rows[0].people.ok = 99;
  assert.match(section(fair), /people that are answered.*\| not decided: rounds disagree \|/);
  for (const { people } of fair.rows) Object.assign(people, { ok: 99, p99_us: null });
  assert.match(section(fair), /people that are answered.*\| \*\*not met\*\* \|\n.*p99 of people.*\| – .*\| \*\*not met\*\* \|/);
});

test('pages of a queue that drains after the load are no part of the capacity', () => {
  const fair = crawlers();
  assert.match(section(fair), /\| fair \| 100\.0 .*\| 1\.00 \|\n[^]*counts pages only if/);
  for (const { people } of fair.rows) delete people.in_time; // an older result
  assert.match(section(fair), /\| fair \| 100\.0 .*\| 1\.03 \|\n[^]*counts pages of crawlers only if/);
});

test('one failed request is enough for a deploy to fail', () => {
  const deploys = fixture('deploys');
  assert.match(section(deploys), /0 failed \| 0 \| met/);
  deploys.rows.find(({ peer }) => peer === 'hostler').refused = 1;
  assert.match(section(deploys), /1 failed \| 0 \| \*\*not met/);
});

test('the throughput is a median for each island, and bursts have the p99 of their own requests', () => {
  const islands = fixture('render');
  assert.match(section(islands), /16 homes \(243 elements\) \| 1\.60 .*\| met \|\n.*a button \(1 element\) \| 2\.00 .*\| met \|\n.*p99 in bursts \| 0\.25 .*\| met \|/);
  for (const row of islands.rows) if (row.peer === 'hostler' && row.island === 'button') row.requests /= 2;
  for (const row of islands.rows) if (row.peer === 'hostler' && row.during) row.during.p99_us = null;
  assert.match(section(islands), /16 homes.*\| met \|\n.*a button.*\| \*\*not met\*\* \|\n.*p99 in bursts.*\| \*\*not met\*\* \|/);
});

test('one incomplete burst fails the target, and so does a median above the limit', () => {
  const photos = fixture('photos');
  assert.equal(section(photos).match(/\| met \|/g).length, 4);
  const own = photos.rows.filter(({ peer, count }) => peer === 'hostler' && count === 500);
  own[0].ok = 499;
  assert.match(section(photos), /500 at once: requests without a redirect \| 1 \| 0 \| \*\*not met/);
  for (const row of own) row.took_us *= 1.2;
  assert.match(section(photos), /500 at once: time.*<= 1\.2 \| \*\*not met/);
});

test('TLS is compared with the better peer, WebSockets with nginx', () => {
  const tls = fixture('tls');
  assert.equal(section(tls).match(/\| met \|/g).length, 4); // and one that the rounds do not decide
  for (const row of tls.rows) if (row.peer === 'haproxy' && row.cell === 'full') row.cpu_ns *= 0.7;
  assert.match(section(tls), /full handshake \| 1\.27.*\| 1\.1 \| \*\*not met\*\* \|/);
  const sockets = fixture('websockets');
  assert.equal(section(sockets).match(/\| met \|/g).length, 2);
  sockets.rows[0].echoed -= 1;
  for (const row of sockets.rows) if (row.peer === 'hostler') row.cpu_ns *= 1.5;
  assert.match(section(sockets), /\*\*not met\*\*[^]*\*\*1 messages never came back/);
});

test('a hit is compared with the better cache, and a burst counts each render', () => {
  const cache = fixture('cache');
  assert.equal(section(cache).match(/\| met \|/g).length, 4); // three hits, and a render for each burst
  for (const row of cache.rows) if (row.peer === 'varnish' && row.cell === '1 kB') row.cpu_ns /= 4;
  cache.rows.find(({ peer, cell }) => peer === 'hostler' && cell === 'burst').renders += 1;
  assert.match(section(cache), /1 kB, one page .*\| \*\*not met\*\* \|[^]*Hostler \| 1\.17 \| \*\*not met\*\* \|/);
});

test('hits with too little memory are shown beside the memory that each cache used', () => {
  const text = section(fixture('cache'));
  assert.match(text, /memory used with a limit of 64 MB, in MB \| 82\.0 .* \| 130\.0 .* \| 130\.0 /);
  assert.match(text, /of it files \| 0\.0 .* \| 110\.0 /);
  assert.match(text, /hits possible in as many bytes, % \| 83\.8 .* \| 93\.1 /);
});

test('one failed request fails the memcached target', () => {
  const memcached = fixture('memcached');
  assert.equal(section(memcached).match(/\| 0 \| met \|/g).length, 6);
  memcached.rows.find(({ cell }) => cell === 'hung').misses.errors = { status: 1 };
  assert.match(section(memcached), /never answers \|.*\| 1 \| \*\*not met\*\* \|/);
});

test('lookups have medians, and the longest wait is that of the worst round', () => {
  const lookups = fixture('lookups');
  const text = section(lookups);
  assert.match(text, /byzip\/97209` \| 0\.94 .*\| met \| 4\.2\d .*\| met \|/);
  assert.match(text, /`, 20,000 addresses \| 0\.86 .*\| \*\*not met\*\* \| 4\.1/);
  assert.match(text, /Hostler \| 0\.20 .*\| 0\.40 .*\| met \|.*\| 62 .*\| met \|/);
  lookups.rows.findLast(({ peer, cell }) => peer === 'hostler' && cell === 'ab').failed = 1;
  for (const row of lookups.rows) if (row.peer === 'hostler' && row.cell === 'half') row.p99_us = null;
  assert.match(section(lookups), /Hostler \| 0\.20 .*\| – .*\| \*\*not met\*\* \|.*\| \*\*not met\*\* \|[^]*1 failed/);
});

test('the cost of geo_headers is the ratio within the same round', () => {
  assert.match(section(fixture('lookups')), /without geo_headers \| 16\.0 µs; 12,500\/s \| 1 \|\n\| with geo_headers \| 17\.6 µs; 12,500\/s \| 1\.10 \(1\.10 \.\. 1\.10\) \|/);
});

test('stalls of the generator stay in p99, and are named beside it', () => {
  const lookups = fixture('lookups');
  const half = lookups.rows.filter(({ peer, cell }) => peer === 'hostler' && cell === 'half');
  for (const row of half) Object.assign(row, { p99_us: 14_000, stalled_intervals: 7, longest_stall_us: 51_000, real_time: false });
  const text = section(lookups);
  assert.match(text, /Hostler \| 0\.20 .*\| 14\.00 .*\| \*\*not met\*\* \|/);
  assert.match(text, /Hostler \| 14\.00 .*\| 14 of 160 \| 51\.0 ms \| 0\.39 .* ms \| 0\.25 .*ms \|\n/);
  assert.match(text, /nothing read \| 0\.12 .*\| not measured \|\n/);
  assert.match(text, /\*\*without real-time priority/);
});

test('one refusal more than with the best fixed number fails, and so does a ratio outside of 5 %', () => {
  const any = fixture('any-app');
  const text = section(any);
  assert.equal(text.match(/\| met \|/g).length, 19);
  assert.match(text, /cold flood: requests\/s \|.*\| 0\.89 .*\| \*\*not met\*\* \|\n.*cold flood: p50 .*\| \*\*not met\*\* \|/);
  for (const row of any.rows) if (row.peer === 'auto' && row.cell === 'wait200') row.ok *= 0.9;
  any.rows.find(({ peer, cell }) => peer === 'auto' && cell === 'streams').lost = 1;
  assert.match(section(any), /waits 200 ms: requests\/s .*\*\*not met\*\*[^]*event streams: requests without a 2xx response \|.*\| 1 and 0 \| not more \| \*\*not met/);
});

test('an app is compared in each figure with the fixed number that is best in it', () => {
  const any = fixture('any-app');
  const mixed = (peer, concurrency) => any.rows.filter((row) => row.cell === 'mixed' && row.peer === peer && row.concurrency === concurrency);
  const ratios = () => /mixed \| Hostler, best fixed number \| (\S+) \(.*?\) \| (\S+) \(.*?\) \| (\S+) /.exec(section(any)).slice(1);
  assert.deepEqual(ratios(), ['0.98', '1.03', '1.03']);
  for (const row of mixed('fixed', 64)) Object.assign(row, { ok: 3800, p50_us: 20_000 });
  assert.deepEqual(ratios(), ['0.49', '2.05', '1.03']);
  mixed('auto')[0].refused = 1;
  mixed('fixed', 1)[0].refused = 7;
  assert.match(section(any), /mixed: requests without a 2xx response \|.*\| 1 and 0 \| not more \| \*\*not met/);
});

test('an app without both forms of Hostler has no verdict', () => {
  const peersOnly = fixture('any-app');
  for (const name of ['rows', 'peers']) peersOnly[name] = peersOnly[name].filter((one) => !['auto', 'fixed'].includes(one.peer ?? one));
  const text = section(peersOnly);
  assert.doesNotMatch(text, /\bmet\b|NaN|undefined/);
  assert.match(text, /not measured/);
});
