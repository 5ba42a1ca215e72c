// Figures over time from the load generator's rows: phases, seconds, recovery, and requests during a deploy.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { around, bySecond, phase, recovery } from '../lib/phases.mjs';

const hit = (at, status, latency) => [0, status, 0, latency * 1e6, at * 1e6];

test('goodput counts the responses completed in a phase, whenever their requests started', () => {
  const hits = [
    hit(0.5, 200, 1), // started before it, answered in it
    hit(1.2, 200, 0.5),
    hit(1.3, 503, 0.01),
    hit(1.4, 0, 10),
    hit(2.9, 200, 3), // started in it, answered too late to count
    hit(3.5, 200, 0.1),
  ];
  const { asked, answered, refused, failed, completed, completed_in_1s, refusal_p99_us } = phase(hits, { from: 1, to: 3 });
  assert.deepEqual({ asked, answered, refused, failed }, { asked: 4, answered: 2, refused: 1, failed: 1 });
  assert.deepEqual({ completed, completed_in_1s }, { completed: 2, completed_in_1s: 2 });
  assert.equal(refusal_p99_us, 10_000);
});

test('an answer that comes after a second is no goodput within a second', () => {
  const { completed, completed_in_1s } = phase([hit(0, 200, 4)], { from: 3, to: 5 });
  assert.deepEqual({ completed, completed_in_1s }, { completed: 1, completed_in_1s: 0 });
});

test('a second with a refusal is not normal, even if the refusal was fast', () => {
  const hits = [hit(0.1, 200, 0.02), hit(1.1, 200, 0.03), hit(2.1, 200, 2), hit(3.1, 503, 0.001), hit(4.1, 200, 0.03), hit(5.1, 200, 9)];
  const p99s = bySecond(hits, 5);
  assert.deepEqual(p99s, [20_000, 30_000, 2e6, Infinity, 30_000]);
  assert.equal(recovery(p99s, { normal: [0, 2], end: 3 }), 1);
  assert.equal(recovery(p99s, { normal: [0, 2], end: 4 }), 0);
  assert.equal(recovery(p99s.slice(0, 4), { normal: [0, 2], end: 2 }), Infinity);
});

test('requests during a deploy are separated from requests between two deploys', () => {
  const hits = [hit(0.5, 200, 0.01), hit(1.5, 200, 0.2), hit(1.6, 502, 0.1), hit(2.5, 503, 0.1)];
  const { asked, refused, failed, during, between } = around(hits, [{ from: 1000, to: 2000 }]);
  assert.deepEqual({ asked, refused, failed }, { asked: 4, refused: 1, failed: 1 });
  assert.deepEqual(during, { asked: 2, p50_us: 200_000, p99_us: Infinity });
  assert.equal(between.asked, 2);
});
