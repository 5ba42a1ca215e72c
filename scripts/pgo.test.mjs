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
  const crate = { CARGO_PKG_NAME: 'h2', CARGO_PKG_VERSION: '0.4.12', CARGO_CRATE_NAME: 'h2' };
  return execFileSync(join(folder, 'rustc.sh'), [compiler, ...args], { encoding: 'utf8', env: { ...process.env, HOSTLER_PGO: '', ...crate, ...env } }).trim().split('\n');
}

test('an optimised build by the same compiler gets the profile', () => {
  assert.deepEqual(passedOn(OPTIMISED), [...OPTIMISED, `-Cprofile-use=${folder}/hostler.profdata`, '-Cllvm-args=-no-pgo-warn-mismatch']);
});

test('the profile serves each host and target', () => {
  const version = readFileSync(join(root, 'pgo/rustc.txt'), 'utf8').replace('commit-hash', 'host: aarch64-unknown-linux-gnu\ncommit-hash');
  assert.ok(passedOn(OPTIMISED, { version }).includes(`-Cprofile-use=${folder}/hostler.profdata`));
});

test('a crate keeps its name whatever it depends on', () => {
  const named = (args) => passedOn(['-C', 'opt-level=3', ...args], { env: { HOSTLER_PGO: 'off' } });
  const library = ['--crate-type', 'lib', '-C'];
  assert.deepEqual(named([...library, 'metadata=0123', '-C', 'extra-filename=-0123']), ['-C', 'opt-level=3', ...library, 'metadata=h2-0.4.12-h2-lib', '-C', 'extra-filename=-0123']);
  assert.deepEqual(named([...library, 'metadata=4567']).at(-1), 'metadata=h2-0.4.12-h2-lib');
  // A library, a program of the same name, and a test of it are linked into one program or lie beside each other.
  const kinds = [['--crate-type', 'lib'], ['--crate-type', 'bin'], ['--test']].map((kind) => named([...kind, '-C', 'metadata=0123']).at(-1));
  assert.equal(new Set(kinds).size, 3);
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

test('a release is built by the compiler of the profile, and not by that of rust-toolchain.toml', () => {
  const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8');
  const [, step] = /- name: Install the compiler that the profile was made with\n +run: \|\n((?: {10}.*\n)+)/.exec(workflow);
  const later = join(folder, 'github-env');
  writeFileSync(join(folder, 'rustup'), '#!/bin/sh\n', { mode: 0o755 });
  execFileSync('sh', ['-e', '-c', step], { cwd: root, env: { ...process.env, PATH: `${folder}:${process.env.PATH}`, GITHUB_ENV: later } });
  // Of what rustup asks for a toolchain, only this variable and +TOOLCHAIN count more than rust-toolchain.toml.
  const [, version] = /^release: (.*)$/m.exec(readFileSync(join(root, 'pgo/rustc.txt'), 'utf8'));
  assert.equal(readFileSync(later, 'utf8'), `RUSTUP_TOOLCHAIN=${version}\n`);
});
