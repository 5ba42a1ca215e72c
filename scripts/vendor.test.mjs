// The changed crate in vendor/: it is the published one with the patch, and nothing else.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from './steps.mjs';
import { FOLDER, files, inFolder, make, version } from './vendor.mjs';

test('vendor/h2 is the published crate with vendor/h2.patch', async () => {
  const expected = await inFolder(async (folder) => {
    await make(join(folder, 'h2'));
    return files(join(folder, 'h2'));
  });
  const found = files(FOLDER);
  assert.deepEqual(Object.keys(found), Object.keys(expected), 'the files of vendor/h2');
  const changed = Object.keys(expected).filter((path) => found[path] !== expected[path]);
  assert.deepEqual(changed, [], 'these files differ: after a change in vendor/h2 run "node scripts/vendor.mjs --save"');
});

test('the program is built with the crate in vendor', () => {
  const lock = readFileSync(join(root, 'Cargo.lock'), 'utf8');
  const entry = /^name = "h2"\nversion = "(.*)"\n(.*)$/m.exec(lock);
  assert.equal(entry[1], version());
  // A crate from a registry has a line `source` there.
  assert.doesNotMatch(entry[2], /^source/);
});
