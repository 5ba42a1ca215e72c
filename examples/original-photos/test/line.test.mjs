// The queue alone: its order, its limit, and callers that leave it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Line } from '../src/line.js';

const stays = new AbortController().signal;

/** Work that ends when the test says so. */
function held() {
  let end;
  const until = new Promise((resolve) => (end = resolve));
  return { work: () => until, end };
}

test('a limited number runs at once, and the rest follow in order of arrival', async () => {
  const line = new Line(2);
  const begun = [];
  const works = [0, 1, 2, 3, 4].map(held);
  const runs = works.map(({ work }, i) => line.run(stays, () => (begun.push(i), work())));
  await Promise.resolve();
  assert.deepEqual(begun, [0, 1]);
  for (const { end } of works) end();
  await Promise.all(runs);
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
});

test('failed work frees its place', async () => {
  const line = new Line(1);
  await assert.rejects(line.run(stays, () => Promise.reject(new Error('no'))), /no/);
  assert.equal(await line.run(stays, () => 'next'), 'next');
});

test('a caller that leaves the line holds no place, and one that left before never enters', async () => {
  const line = new Line(1);
  const [first, leaver] = [held(), new AbortController()];
  const running = line.run(stays, first.work);
  const left = line.run(leaver.signal, () => assert.fail('the caller has left'));
  const last = line.run(stays, () => 'last');
  leaver.abort(new Error('gone'));
  await assert.rejects(left, /gone/);
  first.end();
  await running;
  assert.equal(await last, 'last');
  await assert.rejects(line.run(leaver.signal, () => assert.fail('the caller has left')), /gone/);
});
