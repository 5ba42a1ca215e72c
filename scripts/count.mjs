// Reads from the output of cargo and node how many tests passed and failed, and why. Does not know how they are run.

const NOTHING = { passed: 0, failed: 0, skipped: 0 };

/** One line per test binary: `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...`. */
export function countCargo(output) {
  const lines = plain(output).matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;/gm);
  return [...lines].map(([, passed, failed, skipped]) => ({ passed: +passed, failed: +failed, skipped: +skipped })).reduce(add, NOTHING);
}

/** The closing block of node's test runner: `# pass 3` from the TAP reporter, `ℹ pass 3` from the spec reporter. */
export function countNode(output) {
  const sum = { pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  for (const [, name, count] of plain(output).matchAll(/^(?:#|ℹ) (pass|fail|cancelled|skipped|todo) (\d+)$/gm)) sum[name] += +count;
  return { passed: sum.pass, failed: sum.fail + sum.cancelled, skipped: sum.skipped + sum.todo };
}

/**
 * The result of a suite, with its exit code: a compile error or a crash is a failure without a count, and a suite without tests
 * has shown nothing.
 */
export function judge(counted, code) {
  if (code !== 0 && counted.failed === 0) return { ...counted, failed: 1, why: `exit code ${code}` };
  if (code === 0 && counted.passed + counted.failed === 0) return { ...counted, failed: 1, why: 'it ran no test' };
  return counted;
}

const LONGEST_REASON = 100;

/** The messages of the failed tests, without the lines around them. Of a long message the first lines. */
export function reasons(output) {
  // cargo: from "failures:" to the result of that binary, where their names follow a second time. node: its closing block.
  const blocks = plain(output).matchAll(/^failures:\n\n----[^]*?(?=^failures:$)|^✖ failing tests:\n[^]*?(?=^ℹ |(?![^]))/gm);
  return [...blocks].map(([block]) => shortened(block.trimEnd().split('\n')).join('\n'));
}

function shortened(lines) {
  return lines.length <= LONGEST_REASON ? lines : [...lines.slice(0, LONGEST_REASON), `(${lines.length - LONGEST_REASON} lines more above)`];
}

export function add(a, b) {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

function plain(output) {
  // eslint-disable-next-line no-control-regex -- colours are control characters
  return output.replace(/\u001b\[[0-9;]*m/g, '').replaceAll('\r\n', '\n');
}
