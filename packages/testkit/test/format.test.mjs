// The figures of the live page as text, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock, slotsOf } from '../../../crates/hostler/src/admin/live/page/format.js';

test('the first hour of a day is 00', () => {
  assert.match(clock(new Date(2026, 0, 1, 0, 5, 9) / 1000), /^00.05.09/);
  assert.match(clock(new Date(2026, 0, 1, 23, 59, 59) / 1000), /^23.59.59/);
});

test('the free slots of a member that leaves do not count', () => {
  const lane = (slots, in_use, left = false) => ({ slots, in_use, left });
  assert.equal(slotsOf([lane(4, 1), lane(4, 2, true)]), 6);
  assert.equal(slotsOf([lane(2, 3)]), 3, 'the number was lowered');
});
