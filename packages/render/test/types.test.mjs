// The types of the package, as TypeScript sees them from modules of both kinds.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const TSC = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url));
// Bundlers do not support `import = require()`.
const WAYS = {
  'as Node resolves them': { files: ['module.mts', 'require.cts'], options: ['--module', 'nodenext'] },
  'as bundlers resolve them': { files: ['module.mts'], options: ['--module', 'esnext', '--moduleResolution', 'bundler'] },
  'as TypeScript 5 resolves them for CommonJS': { files: ['require.cts'], options: ['--module', 'commonjs', '--moduleResolution', 'node10', '--ignoreDeprecations', '6.0'] },
};

for (const [how, { files, options }] of Object.entries(WAYS)) {
  test(`the package's types fit, ${how}`, () => {
    const { status, stdout } = compile(files, options);
    assert.equal(status, 0, stdout);
  });
}

test('the types for React 16 and 17 need no types that those do not have', () => {
  const { status, stdout } = compile(['legacy.mts'], ['--module', 'nodenext', '--listFiles']);
  assert.equal(status, 0, stdout);
  const read = stdout.split('\n');
  assert.ok(read.some((file) => file.endsWith('/dist/react.d.ts')));
  assert.deepEqual(read.filter((file) => file.endsWith('/react-dom/client.d.ts')), []);
});

test('the package has the licence of the repository', () => {
  const [own, whole] = ['../LICENSE', '../../../LICENSE'].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'));
  assert.equal(own, whole);
});

function compile(files, options) {
  const paths = files.map((name) => fileURLToPath(new URL(`types/${name}`, import.meta.url)));
  const common = ['--ignoreConfig', '--noEmit', '--strict', '--target', 'es2022', '--types', 'node'];
  return spawnSync(process.execPath, [TSC, ...common, ...options, ...paths], { encoding: 'utf8' });
}
