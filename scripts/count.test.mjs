// The counts in the last line of npm test: it must never print "0 failed" when something failed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCargo, countNode, judge, reasons } from './count.mjs';

const CARGO = `running 2 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 5 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
`;

test('cargo: the binaries are added up', () => {
  assert.deepEqual(countCargo(CARGO), { passed: 7, failed: 3, skipped: 1 });
  assert.deepEqual(countCargo(CARGO.replace('FAILED', '\u001b[31mFAILED\u001b[m')), { passed: 7, failed: 3, skipped: 1 });
});

test('node: both reporters are read, and a cancelled test is a failed one', () => {
  const tap = '# tests 6\n# pass 4\n# fail 1\n# cancelled 1\n# skipped 0\n# todo 0\n';
  assert.deepEqual(countNode(tap), { passed: 4, failed: 2, skipped: 0 });
  assert.deepEqual(countNode(tap.replaceAll('#', 'ℹ')), { passed: 4, failed: 2, skipped: 0 });
});

test('a test whose name looks like a summary is not counted', () => {
  assert.deepEqual(countNode('✔ # pass 9\n  # pass 9\nℹ pass 1\n'), { passed: 1, failed: 0, skipped: 0 });
});

test('a suite that ends with an error or runs no test has failed', () => {
  assert.equal(judge(countCargo(''), 101).failed, 1);
  assert.equal(judge({ passed: 9, failed: 0, skipped: 0 }, 1).failed, 1);
  assert.equal(judge(countNode(''), 0).failed, 1);
  assert.equal(judge({ passed: 9, failed: 0, skipped: 0 }, 0).failed, 0);
});

test('the reason of a failure is found in both outputs, once per suite', () => {
  const cargo = 'running 2 tests\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\npanicked: 1 != 2\n\n\nfailures:\n    a\n\ntest result: FAILED. 1 passed; 1 failed;\n';
  assert.deepEqual(reasons(`${cargo}${CARGO}${cargo}`), Array(2).fill('failures:\n\n---- a stdout ----\npanicked: 1 != 2'));
  const node = '✖ a (3ms)\nℹ tests 1\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.test.mjs:1:1\n✖ a (3ms)\n  Error: no\n';
  assert.deepEqual(reasons(`${node}ℹ tests 3\n`), ['✖ failing tests:\n\ntest at a.test.mjs:1:1\n✖ a (3ms)\n  Error: no']);
  assert.deepEqual(reasons(node), reasons(`${node}ℹ tests 3\n`));
  assert.deepEqual(reasons('✔ failing tests: 3\nℹ fail 0\n'), []);
});

test('a long reason is cut and marked', () => {
  const [reason] = reasons(`✖ failing tests:\n${'  x\n'.repeat(500)}`);
  assert.match(reason, /^✖ failing tests:\n( {2}x\n){99}\(401 lines more above\)$/);
});
