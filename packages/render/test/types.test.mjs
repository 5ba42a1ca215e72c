// The types of the package, as TypeScript sees them from modules of both kinds.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const FILES = ['types/module.mts', 'types/require.cts'].map((name) => fileURLToPath(new URL(name, import.meta.url)));
const TSC = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url));

for (const [how, options] of Object.entries({
  'as Node resolves them': ['--module', 'nodenext'],
  'as bundlers resolve them': ['--module', 'esnext', '--moduleResolution', 'bundler'],
})) {
  // Bundlers do not support `import = require()`.
  const files = how.includes('bundlers') ? FILES.slice(0, 1) : FILES;
  test(`the package's types fit, ${how}`, () => {
    const { status, stdout } = spawnSync(process.execPath, [TSC, '--ignoreConfig', '--noEmit', '--strict', '--target', 'es2022', '--types', 'node', ...options, ...files], { encoding: 'utf8' });
    assert.equal(status, 0, stdout);
  });
}
