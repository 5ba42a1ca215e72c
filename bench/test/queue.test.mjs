// The simulated queue against results of queueing theory, and the service times read from hits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fifo, idealP99, idealTimes, poisson, serviceTimes, variation } from '../lib/queue.mjs';
import { percentile } from '../lib/statistics.mjs';
import { mulberry32 } from '../lib/zipf.mjs';

const close = (found, expected, share, what) => assert.ok(Math.abs(found / expected - 1) <= share, `${what}: ${found}, expected ${expected}`);

/** A long history of one queue: p99 and mean of the time in the system. The unit is the mean service time. */
function simulated({ load, servers, service, count = 800_000, seed = 11 }) {
  const random = mulberry32(seed);
  const [arrivals, services] = [new Float64Array(count), new Float64Array(count)];
  for (let i = 0, at = 0; i < count; i += 1) {
    at -= Math.log(1 - random()) / (load * servers);
    arrivals[i] = at;
    services[i] = service(random);
  }
  const times = fifo(arrivals, services, servers);
  return { p99: percentile(times, 99), mean: times.reduce((sum, one) => sum + one, 0) / count };
}

const exponential = (random) => -Math.log(1 - random());
const constant = () => 1;

test('a request waits for the server that is free first', () => {
  assert.deepEqual([...fifo([0, 1, 2, 20], [10, 4, 3, 5], 1)], [10, 13, 15, 5]);
  assert.deepEqual([...fifo([0, 1, 2, 20], [10, 4, 3, 5], 2)], [10, 4, 6, 5]);
});

test('M/M/1 has the p99 of theory: ln(100) / (1 - load)', () => {
  for (const load of [0.5, 0.7]) close(simulated({ load, servers: 1, service: exponential }).p99, Math.log(100) / (1 - load), 0.02, `load ${load}`);
});

test('M/M/2 has the mean of theory: 1 / (1 - load^2)', () => {
  for (const load of [0.5, 0.9]) close(simulated({ load, servers: 2, service: exponential }).mean, 1 / (1 - load ** 2), 0.02, `load ${load}`);
});

test('M/D/1 has the mean of Pollaczek and Khinchine, and the p99 of Erlang', () => {
  const { mean, p99 } = simulated({ load: 0.5, servers: 1, service: constant });
  close(mean, 1 + 0.5 / (2 * 0.5), 0.01, 'mean');
  close(p99, 1 + erlangWait(0.5, 0.99), 0.02, 'p99');
});

/** Erlang, 1909: the time that a share of all requests do not wait longer than in M/D/1, with a service time of 1. */
function erlangWait(load, share) {
  const waitsLess = (time) => {
    let sum = 0;
    for (let k = 0, factorial = 1; k <= Math.floor(time); factorial *= k += 1) {
      sum += ((load * (k - time)) ** k / factorial) * Math.exp(-load * (k - time));
    }
    return (1 - load) * sum;
  };
  let [low, high] = [0, 20];
  while (high - low > 1e-6) {
    const middle = (low + high) / 2;
    if (waitsLess(middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

test('each slice begins with an empty queue, and service times are drawn by kind', () => {
  const slices = [[[0, 0], [0, 1]], [[0, 1]]];
  assert.equal(idealP99(slices, { services: [[100], [1000]], servers: 1 }), 1100);
  assert.equal(idealP99(slices, { services: [[100], [1000]], servers: 2 }), 1000);
});

test('the ideal times are apart by kind', () => {
  const settings = { services: [[100], [1000]], servers: 1, draws: 2 };
  assert.deepEqual(idealTimes([[[0, 1], [50, 0], [2000, 0]]], settings), [[1050, 100, 1050, 100], [1000, 1000]]);
});

test('arrivals have the rate and the mix that was asked for', () => {
  const slice = poisson({ rate: 1000, seconds: 50, longShare: 0.1 }, mulberry32(5));
  close(slice.length, 50_000, 0.02, 'arrivals');
  close(slice.filter(([, kind]) => kind === 1).length, 5000, 0.05, 'long ones');
  assert.ok(slice.every(([at], i) => at < 50e6 && (i === 0 || at > slice[i - 1][0])));
});

test('the p99 of longer samples varies less, and by the square root of their length', () => {
  const sample = { rate: 100, seconds: 4, longShare: 0, services: [[5000], []], servers: 1, samples: 100 };
  const [short, long] = [5, 80].map((slices) => variation({ ...sample, slices }));
  close(short.relative / long.relative, 4, 0.3, 'ratio of the deviations');
  close(long.mean, 5000 * (1 + erlangWait(0.5, 0.99)), 0.05, 'mean');
});

test('service times leave out the wait behind the request before, and the late start of the generator', () => {
  // [long, status, start lag, latency, planned start]; the second is sent while the first is served, the third late.
  const hits = [[0, 200, 0, 3000, 0], [1, 200, 0, 12_000, 1000], [0, 200, 500, 3600, 20_000]];
  assert.deepEqual(serviceTimes(hits.toReversed()), [[3000, 3100], [10_000]]);
});

test('service times are found again whatever the order in which a worker takes its requests', () => {
  const random = mulberry32(3);
  const waiting = poisson({ rate: 150, seconds: 60, longShare: 0.1 }, random).map(([at, long]) => ({ at, long, service: long ? 30_000 : 3000 }));
  const hits = [];
  for (let now = 0; waiting.length > 0;) {
    const here = waiting.filter(({ at }) => at <= now);
    const next = here.length > 0 ? here[Math.floor(random() * here.length)] : waiting[0];
    now = Math.max(now, next.at) + next.service;
    hits.push([next.long, 200, 0, now - next.at, next.at]);
    waiting.splice(waiting.indexOf(next), 1);
  }
  const [short, long] = serviceTimes(hits);
  assert.ok(short.every((time) => Math.abs(time - 3000) < 0.01) && long.every((time) => Math.abs(time - 30_000) < 0.01));
  assert.equal(short.length + long.length, hits.length);
});
