// Everything the bench needs on the machine: Debian packages, its own two programs, Hostler, the example app.
// Knows how to get them and which versions they are; starts none of them.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { app } from './app.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BENCH = join(ROOT, 'bench');
const CACHE = join(BENCH, '.cache');

export const upstreamBinary = join(CACHE, 'upstream', 'release', 'bench-upstream');
export const loadBinary = join(CACHE, 'load');

export function hostlerBinary() {
  return process.env.HOSTLER_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'release', 'hostler');
}

/** Installs those of the packages whose program is missing; a package is named like its program here. */
export async function installPackages(packages) {
  const missing = [...new Set(packages)].filter((name) => !onPath(name));
  if (missing.length === 0) return;
  const install = `apt-get update && apt-get install -y --no-install-recommends ${missing.join(' ')}`;
  if (process.getuid() !== 0 || !onPath('apt-get')) {
    throw new Error(`these programs are missing: ${missing.join(', ')}\nInstall them, as root on Debian:\n  ${install}`);
  }
  await visibly('sh', ['-c', install]);
}

export async function buildUpstream() {
  need('cargo', 'Rust builds the upstream of the proxy scenario: https://rustup.rs');
  const target = ['--target-dir', join(CACHE, 'upstream')];
  await visibly('cargo', ['build', '--release', '--locked', '--quiet', ...target], { cwd: join(BENCH, 'upstream') });
}

export async function buildLoad() {
  need('go', 'Go builds the load generator of the tail scenario: https://go.dev/dl');
  mkdirSync(CACHE, { recursive: true });
  await visibly('go', ['build', '-o', loadBinary, '.'], { cwd: join(BENCH, 'load') });
}

export async function buildHostler() {
  if (process.env.HOSTLER_BIN) {
    if (!existsSync(process.env.HOSTLER_BIN)) throw new Error(`HOSTLER_BIN: no file ${process.env.HOSTLER_BIN}`);
    return;
  }
  need('cargo', 'Rust builds Hostler: https://rustup.rs');
  await visibly('cargo', ['build', '--release', '--bin', 'hostler'], { cwd: ROOT });
}

export async function buildApp() {
  if (!existsSync(app.dir)) throw new Error(`${app.name} is not there: ${app.dir}`);
  if (!existsSync(join(ROOT, 'node_modules'))) await visibly('npm', ['install', '--no-audit', '--no-fund'], { cwd: ROOT });
  await visibly('npm', ['run', '--silent', 'build'], { cwd: app.dir });
}

/** What `program` says of its version, the first number with a dot in it; null if the program is not there. */
export function version(program, flag = '--version') {
  const result = spawnSync(program, [flag], { encoding: 'utf8' });
  return /v?(\d+\.\d[^\s,\]]*)/.exec(`${result.stdout}${result.stderr}`)?.[1] ?? null;
}

/** The version of vegeta that go.sum holds us to. */
export function vegetaVersion() {
  if (!onPath('go')) return null;
  const args = ['list', '-m', '-f', '{{.Version}}', 'github.com/tsenart/vegeta/v12'];
  return execFileSync('go', args, { cwd: join(BENCH, 'load'), encoding: 'utf8' }).trim();
}

function onPath(program) {
  // Debian keeps servers in /usr/sbin, which is on root's path only.
  process.env.PATH = [...new Set([...process.env.PATH.split(':'), '/usr/sbin', '/sbin'])].join(':');
  return process.env.PATH.split(':').some((dir) => existsSync(join(dir, program)));
}

function need(program, why) {
  if (!onPath(program)) throw new Error(`${program} is missing. ${why}`);
}

/** Runs a build step in front of the user's eyes. */
function visibly(command, args, { cwd } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args.join(' ')} ended with ${signal ?? code}`));
    });
  });
}
