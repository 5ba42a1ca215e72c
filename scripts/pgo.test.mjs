// Which builds get the profile of pgo/. Runs pgo/rustc.sh with a compiler that prints its arguments.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { root } from './steps.mjs';

const OPTIMISED = ['--crate-name', 'h2', '-C', 'opt-level=3', '-C', 'codegen-units=1'];
// A folder with a space, as a checkout can have.
const folder = mkdtempSync(join(tmpdir(), 'hostler pgo '));
after(() => rmSync(folder, { recursive: true }));
cpSync(join(root, 'pgo'), folder, { recursive: true });
const compiler = join(folder, 'compiler');
writeFileSync(compiler, `#!/bin/sh\nif [ "$*" = -vV ]; then cat '${folder}/version.txt'; else printf '%s\\n' "$@"; fi\n`, { mode: 0o755 });

function passedOn(args, { version = readFileSync(join(root, 'pgo/rustc.txt')), env = {} } = {}) {
  writeFileSync(join(folder, 'version.txt'), version);
  return execFileSync(join(folder, 'rustc.sh'), [compiler, ...args], { encoding: 'utf8', env: { ...process.env, HOSTLER_PGO: '', ...env } }).trim().split('\n');
}

test('an optimised build by the same compiler gets the profile', () => {
  assert.deepEqual(passedOn(OPTIMISED), [...OPTIMISED, `-Cprofile-use=${folder}/hostler.profdata`, '-Cllvm-args=-no-pgo-warn-mismatch']);
});

test('all other builds stay as they are', () => {
  const otherwise = (args, settings) => assert.deepEqual(passedOn(args, settings), args);
  otherwise(['--crate-name', 'h2', '-C', 'debuginfo=0']);
  otherwise(['--crate-name', 'brotli', '-C', 'opt-level=2']);
  otherwise([...OPTIMISED, '-Cprofile-generate=/tmp/counts']);
  otherwise([...OPTIMISED, '-C', 'profile-use=/tmp/own.profdata']);
  otherwise(OPTIMISED, { version: 'rustc 1.96.0 (0123456789 2026-06-01)\n' });
  otherwise(OPTIMISED, { env: { HOSTLER_PGO: 'off' } });
});
