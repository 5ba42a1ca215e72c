// The figures of the live page as text, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock } from '../../../crates/hostler/src/admin/live/page/format.js';

test('the first hour of a day is 00', () => {
  assert.match(clock(new Date(2026, 0, 1, 0, 5, 9) / 1000), /^00.05.09/);
  assert.match(clock(new Date(2026, 0, 1, 23, 59, 59) / 1000), /^23.59.59/);
});
