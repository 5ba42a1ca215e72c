// The lines of the log, and how often they are written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from '../src/refusal.js';
import { createReport } from '../src/report.js';

function heard() {
  const clock = { ms: 0 };
  const lines = [];
  return { clock, lines, report: createReport((line) => lines.push(line), () => clock.ms) };
}

test('a burst of failures is one line, and the next line counts the omitted ones', () => {
  const { clock, lines, report } = heard();
  for (let id = 1; id <= 500; id += 1) report(String(id), new Refusal('upstream_invalid', { detail: 'status 500' }));
  report('7', new Refusal('upstream_timeout'));
  clock.ms = 1001;
  report('501', new Refusal('upstream_invalid', { detail: 'not JSON' }));
  assert.deepEqual(lines, [
    'lookup of 1 failed: upstream_invalid (status 500)',
    'lookup of 7 failed: upstream_timeout',
    'lookup of 501 failed: upstream_invalid (not JSON); 499 more since the last such line',
  ]);
});

test('an invalid key is logged once a minute, and errors and disconnects of clients are not logged', () => {
  const { clock, lines, report } = heard();
  for (const ms of [0, 30_000, 61_000]) {
    clock.ms = ms;
    report('1', new Refusal('misconfigured', { detail: 'code 100' }));
  }
  assert.equal(lines.length, 2);
  report('1', new Refusal('unknown_photo'));
  report('1', new DOMException('gone', 'AbortError'));
  assert.equal(lines.length, 2);
});

test('an unexpected error is logged completely', () => {
  const { lines, report } = heard();
  report('', new TypeError('x is not a function'));
  assert.match(lines[0], /^internal error: TypeError: x is not a function\n {4}at /);
});
