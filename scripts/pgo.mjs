// npm run pgo: makes pgo/hostler.profdata again. It builds Hostler with counters, loads it with short runs of the benchmarks and with
// bench/training.mjs, and merges what was counted. Does not know how Cargo gets the profile (pgo/rustc.sh).
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPackages } from './debian.mjs';
import { checkToolchain, has, mustRun, root, say, stop } from './steps.mjs';

/** With bench/training.mjs they use each part of a request's path. `tail` uses the same code as `overload`. */
const SCENARIOS = ['proxy', 'scale', 'tls', 'websockets', 'cache', 'memcached', 'lookups', 'photos', 'render', 'idle', 'deploys', 'overload', 'any-app'];
/** What Hostler is called among the peers, where that is not `hostler`. */
const PEERS = { 'any-app': 'auto' };

const TARGET = join(root, 'target', 'pgo');
const COUNTS = join(TARGET, 'counts');

checkToolchain();
const compiler = execFileSync('rustc', ['-vV'], { cwd: root, encoding: 'utf8' });
const merge = await profdata();
const counting = { ...process.env, RUSTFLAGS: `-Cprofile-generate=${COUNTS}`, CARGO_TARGET_DIR: TARGET };
say('Building Hostler with counters');
await mustRun('cargo', ['build', '--release', '--locked', '-p', 'hostler'], { env: counting });

rmSync(COUNTS, { recursive: true, force: true });
mkdirSync(COUNTS);
const env = { ...process.env, HOSTLER_BIN: join(TARGET, 'release', 'hostler'), LLVM_PROFILE_FILE: join(COUNTS, '%p.profraw') };
for (const scenario of SCENARIOS) {
  say(`Loading it: ${scenario}`);
  await mustRun('node', ['bench/run.mjs', scenario, '--quick', '--peers', PEERS[scenario] ?? 'hostler'], { env });
}
say('Loading it: training');
await mustRun('node', ['bench/training.mjs'], { env });
if (readdirSync(COUNTS).length === 0) stop('Hostler wrote no counts');
// Without --sparse: the profile names the functions that never ran, too. The compiler makes those small.
await mustRun(merge, ['merge', '-o', join(root, 'pgo', 'hostler.profdata'), COUNTS]);
// A profile serves each target, so the host does not count.
writeFileSync(join(root, 'pgo', 'rustc.txt'), compiler.replace(/^host:.*\n/m, ''));
say('Wrote pgo/hostler.profdata and pgo/rustc.txt');

/** llvm-profdata of the LLVM that the compiler contains. Another version may not read the counts. */
async function profdata() {
  const fact = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(compiler)?.[1];
  const major = fact('LLVM version').split('.')[0];
  const sysroot = execFileSync('rustc', ['--print', 'sysroot'], { cwd: root, encoding: 'utf8' }).trim();
  const ofRustup = join(sysroot, 'lib', 'rustlib', fact('host'), 'bin', 'llvm-profdata');
  if (existsSync(ofRustup)) return ofRustup;
  const ofDebian = `llvm-profdata-${major}`;
  if (has(ofDebian) || (await installPackages([`llvm-${major}`]))) return ofDebian;
  return stop(`llvm-profdata of LLVM ${major} is missing: "rustup component add llvm-tools" or "apt-get install llvm-${major}"`);
}
