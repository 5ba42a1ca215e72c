// The samples of the plots of the live page, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followed } from '../../../crates/hostler/src/admin/live/page/plots.js';

const times = (...all) => all.map((at) => ({ at }));

test('a new sample follows those before it, and the oldest of fifteen minutes goes', () => {
  assert.deepEqual(followed(times(100, 105), times(110)), times(100, 105, 110));
  const full = Array.from({ length: 180 }, (_, index) => ({ at: index * 5 }));
  assert.deepEqual(followed(full, times(900)), [...full.slice(1), { at: 900 }]);
});

test('after the clock of the server was set back, no sample is later than the newest', () => {
  assert.deepEqual(followed(times(100, 105, 110), times(104)), times(100, 104));
  assert.deepEqual(followed(times(100, 105, 110), times(1)), times(1));
});
