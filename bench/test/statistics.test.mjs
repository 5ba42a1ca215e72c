// The computations behind the figures: median, percentiles, ratios of same-round pairs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreement, jainIndex, median, pairedRatio, percentile, pooledPercentile, ratioToBest, summary, summaryText } from '../lib/statistics.mjs';

test('the median is the middle value, or the mean of the two middle ones', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([10, 2, 4, 1]), 3);
  assert.equal(median([100, 9]), 54.5, 'sorted as numbers, not as text');
  assert.ok(Number.isNaN(median([])));
});

test('an answer that never came is larger than any other', () => {
  assert.equal(median([1, Infinity, 2]), 2);
  assert.equal(median([1, Infinity, Infinity]), Infinity);
  assert.equal(percentile([1, 2, 3, Infinity], 75), 3);
  assert.equal(percentile([1, 2, 3, Infinity], 76), Infinity);
});

test('a percentile is the value at the nearest rank, without rounding errors', () => {
  const thousand = Array.from({ length: 1000 }, (_, i) => 1000 - i);
  assert.equal(percentile(thousand, 50), 500);
  assert.equal(percentile(thousand, 99), 990);
  assert.equal(percentile(thousand, 99.9), 999);
  assert.equal(percentile(thousand, 100), 1000);
  assert.equal(percentile([7], 1), 7);
});

test('a pooled percentile needs only the largest values of each sample', () => {
  const one = Array.from({ length: 1000 }, (_, i) => i);
  const two = Array.from({ length: 500 }, (_, i) => 2 * i);
  const samples = [one, two].map((values) => ({ size: values.length, largest: values.slice(-30) }));
  assert.equal(pooledPercentile(samples, 99.9), percentile([...one, ...two], 99.9));
  assert.equal(pooledPercentile(samples, 99), percentile([...one, ...two], 99));
  assert.ok(Number.isNaN(pooledPercentile(samples, 50)), 'rather no figure than a wrong one');
});

test('a ratio is the median over pairs of the same round, not of the medians', () => {
  const rows = [
    { round: 1, peer: 'a', cost: 1 }, { round: 1, peer: 'b', cost: 2 },
    { round: 2, peer: 'b', cost: 40 }, { round: 2, peer: 'a', cost: 30 },
    { round: 3, peer: 'a', cost: 3 }, { round: 3, peer: 'b', cost: 3 },
  ];
  const ratio = pairedRatio(rows, { one: 'a', other: 'b', value: ({ cost }) => cost });
  assert.deepEqual(ratio, { median: 0.75, min: 0.5, max: 1, count: 3, values: [0.5, 0.75, 1] });
});

test('a round without one of the two has no pair', () => {
  const rows = [{ round: 1, peer: 'a', cost: 1 }, { round: 2, peer: 'b', cost: 2 }];
  assert.equal(pairedRatio(rows, { one: 'a', other: 'b', value: ({ cost }) => cost }), null);
});

test('the best of several peers is another one in each round', () => {
  const costs = { 1: { a: 6, b: 4, c: 6 }, 2: { a: 6, b: 12, c: 3 }, 3: { a: 6, b: 6, c: 8 }, 4: { a: 6, b: 1 } };
  const rows = Object.entries(costs).flatMap(([round, each]) => Object.entries(each).map(([peer, cost]) => ({ round: Number(round), peer, cost })));
  const value = ({ cost }) => cost;
  assert.deepEqual(ratioToBest(rows, { one: 'a', others: ['b', 'c'], value }), { median: 1.5, min: 1, max: 2, count: 3, values: [1.5, 2, 1] });
  assert.equal(ratioToBest(rows, { one: 'a', others: ['d', 'c'], value }), null);
  assert.equal(ratioToBest(rows, { one: 'a', others: [], value }), null);
});

test('a summary has its smallest and largest value', () => {
  assert.deepEqual(summary([3, 1, 2]), { median: 2, min: 1, max: 3, count: 3 });
});

test('a summary as text has the median and the spread', () => {
  assert.equal(summaryText(summary([1, 1.5, 1.25])), '1.25 (1.00 to 1.50)');
  assert.equal(summaryText(summary([1, 1.5, 1.25]), 3), '1.250 (1.00 to 1.50)');
});

test('rounds agree if so many of them would fall on one side by chance in one of 16 cases at most', () => {
  const below = (limit) => (value) => value <= limit;
  assert.equal(agreement([0.8, 0.9, 0.9, 0.85, 0.7], below(1)), true);
  assert.equal(agreement([1.2, 1.1, 1.3, 1.4], below(1)), false);
  assert.equal(agreement([0.8, 0.9, 0.9, 0.85, 1.01], below(1)), null, 'four of five');
  assert.equal(agreement([0.8, 0.9, 0.9, 0.85, 0.7, 0.8, 1.3], below(1)), true, 'six of seven');
  assert.equal(agreement([0.8, 0.9, 0.9], below(1)), null, 'three rounds are too few');
  assert.equal(agreement([Infinity, Infinity, NaN, Infinity], below(1)), false, 'an answer that never came is no agreement that it came');
  assert.equal(agreement([], below(1)), null);
});

test("Jain's index is 1 if all have the same, and 1 / n if one of n has everything", () => {
  assert.equal(jainIndex([7, 7, 7]), 1);
  assert.equal(jainIndex([0, 0, 0, 9]), 0.25);
  assert.equal(jainIndex([1, 2, 3, 4]).toFixed(3), '0.833');
});
