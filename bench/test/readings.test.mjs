// Figures that are read from other programs: /proc, wrk, the load generator; and the processes of a session.
import assert from 'node:assert/strict';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAb } from '../lib/ab.mjs';
import { planned, within } from '../lib/budget.mjs';
import { figures, slowdownP99 } from '../lib/load.mjs';
import { parseH2load } from '../lib/h2load.mjs';
import { cpuTime, family, filesBytes, proportionalBytes, residentBytes, statTicks } from '../lib/procfs.mjs';
import { createProgress, duration } from '../lib/progress.mjs';
import { createSession } from '../lib/session.mjs';
import { parseWrk } from '../lib/wrk.mjs';
import { likeliest, zipf } from '../lib/zipf.mjs';
import { inRounds, inTurn } from '../lib/rounds.mjs';
import { typicalSeeds } from '../lib/schedules.mjs';
import { ableTo } from '../scenarios/proxy.mjs';

test('CPU time of a busy process grows by its use, counted in both ways', () => {
  const spent = () => Object.values(process.cpuUsage()).reduce((sum, us) => sum + us, 0) / 1e6;
  const [before, start] = [cpuTime([process.pid]), spent()];
  while (spent() < start + 0.3);
  const [after, end] = [cpuTime([process.pid]), spent()];
  for (const way of ['scheduled', 'ticks']) {
    const used = (after[way] - before[way]) / 1e9;
    assert.ok(Math.abs(used - (end - start)) < 0.05, `${way}: ${used} s, the process says ${end - start} s`);
  }
  assert.ok(residentBytes(process.pid) > 10e6);
});

test('a page that two processes share counts once, and a file counts until no process holds it', async (t) => {
  const session = createSession();
  t.after(() => session.close());
  const started = session.start('sh', ['-c', 'sleep 600 & echo up; wait']);
  while (family(started.pid).length < 2) await new Promise(setImmediate);
  const pids = family(started.pid);
  const apart = pids.map(residentBytes).reduce((sum, one) => sum + one, 0);
  assert.ok(proportionalBytes(pids) > 0 && proportionalBytes(pids) < apart, `${proportionalBytes(pids)} of ${apart}`);

  const folder = mkdtempSync(join(tmpdir(), 'hostler-bench-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'a'));
  for (const name of ['kept', 'a/held']) writeFileSync(join(folder, name), 'x'.repeat(100_000));
  const held = openSync(join(folder, 'a/held'), 'r');
  const both = filesBytes(folder, [process.pid]);
  rmSync(join(folder, 'a/held'));
  assert.ok(both >= 200_000);
  assert.equal(filesBytes(folder, [process.pid]), both);
  closeSync(held);
  assert.equal(filesBytes(folder, [process.pid]), both / 2);
});

test('the most likely pages get the share of their weights', () => {
  assert.equal(likeliest({ keys: 4, exponent: 1, count: 2 }), 1.5 / (1 + 1 / 2 + 1 / 3 + 1 / 4));
  assert.equal(likeliest({ keys: 4, exponent: 1, count: 9 }), 1);
});

test('a command with parentheses and spaces does not shift the fields of a stat line', () => {
  assert.equal(statTicks('17 (a) b (c)) S 1 17 17 0 -1 4194304 1 0 0 0 120 30 0 0 20 0 1 0'), 150);
});

test("wrk's figures are found among its other output, errors included", () => {
  const text = 'Running 1s test\n  x\nJSON {"requests":10,"microseconds":2000000,"bytes":7,"p50":5,"p99":9,"connect":0,"read":0,"write":0,"status":3,"timeout":0}\n';
  assert.deepEqual(parseWrk(text), {
    requests: 10, seconds: 2, bytes: 7, p50_us: 5, p99_us: 9, errors: { connect: 0, read: 0, write: 0, status: 3, timeout: 0 },
  });
  assert.throws(() => parseWrk('unable to connect'), /wrk printed no figures/);
});

test("h2load's figures are found, and only 2xx responses count as requests", () => {
  const text = `Application protocol: h2

finished in 1.01s, 6162.00 req/s, 1.2MB/s
requests: 6162 total, 6262 started, 6162 done, 6100 succeeded, 60 failed, 2 errored, 1 timeout
status codes: 6100 2xx, 0 3xx, 3 4xx, 57 5xx
`;
  const errors = { status: 60, failed: 60, errored: 2, timeout: 1 };
  assert.deepEqual(parseH2load(text), { protocol: 'h2', requests: 6100, seconds: 1.01, errors });
  assert.throws(() => parseH2load('Some requests were not processed'), /h2load printed no figures/);
});

test("ab's figures are found, and responses other than 2xx count as failed", () => {
  const text = `Complete requests:      2000
Failed requests:        1
Non-2xx responses:      3
Requests per second:    2718.28 [#/sec] (mean)
  50%    103
  99%    300
 100%    316 (longest request)
`;
  assert.deepEqual(parseAb(text), { requests: 2000, rate: 2718.28, failed: 4, p50_ms: 103, p99_ms: 300, longest_ms: 316 });
  assert.throws(() => parseAb('apr_socket_recv: Connection refused (111)'), /ab printed no figures/);
});

test('pages are drawn by the weight of their rank, and equal seeds draw equal pages', () => {
  const draws = zipf({ keys: 1000, exponent: 1, count: 50_000, seed: 1 });
  const times = new Map();
  for (const page of draws) times.set(page, (times.get(page) ?? 0) + 1);
  const counts = [...times.values()].sort((a, b) => b - a);
  // The weights of 1 / k add up to 7.49: the most frequent page has 13 %, the tenth a tenth of that.
  assert.ok(Math.abs(counts[0] / 50_000 - 0.1336) < 0.01, `${counts[0]}`);
  assert.ok(Math.abs(counts[9] / 50_000 - 0.01336) < 0.003, `${counts[9]}`);
  assert.deepEqual(draws.slice(0, 100), zipf({ keys: 1000, exponent: 1, count: 100, seed: 1 }));
});

test('refusals and failures are counted separately, and raise the tail', () => {
  const answered = Array.from({ length: 97 }, (_, i) => [i % 10 === 0 ? 1 : 0, 200, 5, 1000 + i]);
  const hits = [...answered, [0, 503, 5, 10], [0, 503, 5, 10], [1, 0, 5, 30e6]];
  const { ok, refused, failed, p50_us, p99_us, slowest_us } = figures({ planned: 100, hits });
  assert.deepEqual({ ok, refused, failed }, { ok: 97, refused: 2, failed: 1 });
  assert.equal(p50_us, 1049);
  assert.equal(p99_us, Infinity);
  assert.deepEqual(slowest_us, [Infinity, Infinity]);
});

test('the slowdown of a page is its time in times of such a page alone, and a refusal is never answered', () => {
  const hits = [[0, 200, 0, 4000, 0], [1, 200, 0, 40_000, 0]];
  assert.equal(slowdownP99(hits, { short: 2000, long: 10_000 }), 4);
  assert.equal(slowdownP99([...hits, [0, 503, 0, 100, 0]], { short: 2000, long: 10_000 }), Infinity);
});

test('each peer is first in turn, and each row names its round and peer', async () => {
  const told = [];
  const progress = { step: (text) => told.push(text) };
  const ending = ({ round, found }) => [{ peer: 'floor', found: found.length, of: round }];
  const measure = ({ cell, peer }) => (peer === 'b' ? [{ cell, part: 1 }, { cell, part: 2 }] : { cell, part: 1 });
  const settings = { rounds: 2, cells: ['one', 'two'], peers: (cell) => (cell === 'one' ? ['a', 'b'] : ['b']), progress, told: (rows) => rows.map(({ peer }) => peer).join('+'), ending };
  const rows = await inRounds(settings, measure);
  assert.deepEqual(rows.map(({ round, cell = 'end', peer }) => `${round} ${cell} ${peer}`), [
    '1 one a', '1 one b', '1 one b', '1 two b', '1 two b', '1 end floor', '2 one b', '2 one b', '2 one a', '2 two b', '2 two b', '2 end floor',
  ]);
  assert.deepEqual(rows.filter(({ peer }) => peer === 'floor').map(({ found, of }) => [found, of]), [[5, 1], [5, 2]]);
  assert.ok(rows.every(({ load1 }) => load1 >= 0));
  assert.deepEqual(told.slice(0, 4), ['round 1/2  a', 'round 1/2  b+b', 'round 1/2  b+b', 'round 1/2  floor']);
});

test('a peer without a queue is left out where there is a queue', () => {
  const peers = ['hostler', 'relay', 'haproxy', 'nginx'];
  assert.deepEqual(ableTo({ slots: 64 }, peers), ['direct', 'hostler', 'relay', 'haproxy', 'nginx']);
  assert.deepEqual(ableTo({ slots: 1 }, peers), ['hostler', 'haproxy']);
});

test('in turns, each peer has each place and each neighbour equally often', () => {
  for (const peers of [['a', 'b'], ['a', 'b', 'c'], ['a', 'b', 'c', 'd'], ['a', 'b', 'c', 'd', 'e']]) {
    const turns = peers.length % 2 === 1 ? 2 * peers.length : peers.length;
    const orders = Array.from({ length: turns }, (_, turn) => inTurn(peers, turn));
    const counted = (seen) => [...new Set(seen)].map((one) => seen.filter((other) => other === one).length);
    const places = counted(orders.flatMap((order) => order.map((peer, place) => `${peer}${place}`)));
    const neighbours = counted(orders.flatMap((order) => order.slice(1).map((peer, before) => `${order[before]}${peer}`)));
    assert.deepEqual(places, Array(peers.length ** 2).fill(turns / peers.length));
    assert.deepEqual(neighbours, Array(peers.length * (peers.length - 1)).fill(turns / peers.length));
  }
});

test('a budget takes rounds from the longest part, and leaves each part one', () => {
  const part = (rounds, each) => ({ peers: ['a', 'b'], settings: { rounds, seconds: each }, scenario: { lasts: ({ rounds, seconds }, peers) => rounds * seconds * peers.length } });
  const rounds = (some) => some.map(({ settings }) => settings.rounds);
  const runs = [part(5, 10), part(4, 3)];
  assert.equal(planned(runs), 124);
  assert.deepEqual(rounds(within(Infinity, runs)), [5, 4]);
  assert.deepEqual(rounds(within(80, runs)), [2, 4]);
  assert.deepEqual(rounds(within(1, runs)), [1, 1]);
  assert.deepEqual(rounds(runs), [5, 4], 'the settings of the scenarios stay');
});

test('typical seeds are those whose ideal p99 is nearest to that of the long run', async () => {
  const queue = { services: [[10], [100]], servers: 1 };
  // The plan of seed 7 has a long page, which no other plan has.
  const plan = async (seed) => [[0, seed === 7 ? 1 : 0]];
  const chosen = await typicalSeeds({ plan, from: 0, slices: 2, wanted: 100, ...queue });
  assert.deepEqual([chosen.seeds, chosen.p99, chosen.tried], [[6, 7], 100, 4]);
  const nearest = await typicalSeeds({ plan, from: 0, slices: 2, wanted: 80, ...queue });
  assert.deepEqual([nearest.seeds, nearest.distance], [[6, 7], 0.25]);
});

test('progress says how long the rest will take', () => {
  const lines = [];
  let clock = 0;
  const progress = createProgress({ steps: 10, plannedSeconds: 90, print: (line) => lines.push(line), now: () => clock });
  progress.begin('work');
  clock = 20_000;
  progress.step('one');
  assert.deepEqual(lines, ['work: 10 steps, about 2 min', '[ 1/10] one   (3 min left)']);
  assert.equal(duration(59.4), '59 s');
  assert.equal(duration(7500), '2 h 5 min');
});

test('a session ends its processes and their children, and removes its folder', async (t) => {
  const session = createSession();
  t.after(() => session.close());
  const started = session.start('sh', ['-c', 'sleep 600 & echo up; wait']);
  while (family(started.pid).length < 2) await new Promise(setImmediate);
  const [parent, child] = family(started.pid);
  await session.close();
  assert.deepEqual(family(child), [child], 'a process that has ended has no children');
  assert.ok(started.ended !== null);
  assert.ok(!existsSync(session.dir));
  const deadline = performance.now() + 5000;
  while (alive(child) && performance.now() < deadline) await new Promise(setImmediate);
  assert.ok(!alive(parent) && !alive(child));
});

test('a program that fails is reported with its last output', async (t) => {
  const session = createSession();
  t.after(() => session.close());
  await assert.rejects(session.run('sh', ['-c', 'echo went wrong >&2; exit 3']), /sh ended with 3\nwent wrong/);
  await assert.rejects(session.run('no-such-program', []), /no-such-program: No such file/);
});

/** A zombie has ended, even if its parent has not reaped it yet. */
function alive(pid) {
  try {
    process.kill(pid, 0);
    return family(pid).length > 0 && residentBytesOrZero(pid) > 0;
  } catch {
    return false;
  }
}

function residentBytesOrZero(pid) {
  try {
    return residentBytes(pid);
  } catch {
    return 0;
  }
}
