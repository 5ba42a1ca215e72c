// Everything that the bench needs on the machine: Debian packages, its own two programs, Hostler, the example app. Knows
// how to get them and their versions. Starts none of them.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { installPackages as installFromDebian } from '../../scripts/debian.mjs';
import { has, installModules, mustRun, root as ROOT } from '../../scripts/steps.mjs';
import { app } from './app.mjs';
import { installOnce, installedVersion, npmFolder } from './npm.mjs';

// Debian has servers in folders that only root's path contains.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);

export { ROOT, installModules };
const BENCH = join(ROOT, 'bench');
const CACHE = join(BENCH, '.cache');

export const upstreamBinary = join(CACHE, 'upstream', 'release', 'bench-upstream');
export const paceBinary = join(CACHE, 'upstream', 'release', 'bench-pace');
export const relayBinary = join(CACHE, 'relay');
export const loadBinary = join(CACHE, 'load');
export const burstBinary = join(CACHE, 'burst');
export const handshakesBinary = join(CACHE, 'handshakes');
export const socketsBinary = join(CACHE, 'sockets');

const PM2 = '7.0.4';
const PM2_FOLDER = npmFolder(`pm2-${PM2}`);
export const pm2Script = join(PM2_FOLDER, 'node_modules', 'pm2', 'bin', 'pm2');

export function hostlerBinary() {
  return process.env.HOSTLER_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'release', 'hostler');
}

/** Requires two cores, because `one` has the first core to itself. */
export function needTwoCores(scenario, one) {
  if (availableParallelism() < 2) throw new Error(`the ${scenario} scenario needs two cores: one for ${one}, one for the load`);
}

/** The names of programs that differ from their package's name. */
const PROGRAMS = { 'nghttp2-client': 'h2load', 'apache2-utils': 'ab', varnish: 'varnishd', 'linux-perf': 'perf' };

/** Installs the packages whose program is missing. */
export async function installPackages(packages) {
  const missing = [...new Set(packages)].filter((name) => !has(PROGRAMS[name] ?? name));
  if (missing.length === 0) return;
  if (await installFromDebian(missing)) return;
  const install = `apt-get update && apt-get install -y --no-install-recommends ${missing.join(' ')}`;
  throw new Error(`these programs are missing: ${missing.join(', ')}\nInstall them, as root on Debian:\n  ${install}`);
}

export async function buildUpstream() {
  need('cargo', 'Rust builds the upstream of the proxy scenario and the generator of lookups: https://rustup.rs');
  const target = ['--target-dir', join(CACHE, 'upstream')];
  await mustRun('cargo', ['build', '--release', '--locked', '--quiet', ...target], { cwd: join(BENCH, 'upstream') });
}

export async function buildRelay() {
  need('cc', 'A C compiler builds the relay of the proxy scenario.');
  mkdirSync(CACHE, { recursive: true });
  const source = join(BENCH, 'relay', 'relay.c');
  if (existsSync(relayBinary) && statSync(relayBinary).mtimeMs > statSync(source).mtimeMs) return;
  await mustRun('cc', ['-O2', '-Wall', '-Wextra', '-Werror', '-o', relayBinary, source]);
}

export async function buildLoad() {
  await buildGo(loadBinary, '.');
}

export async function buildBurst() {
  await buildGo(burstBinary, './burst');
}

export async function buildHandshakes() {
  await buildGo(handshakesBinary, './handshakes');
}

export async function buildSockets() {
  await buildGo(socketsBinary, './sockets');
}

async function buildGo(binary, program) {
  need('go', 'Go builds the load generators: https://go.dev/dl');
  mkdirSync(CACHE, { recursive: true });
  await mustRun('go', ['build', '-o', binary, program], { cwd: join(BENCH, 'load') });
}

export async function installPm2() {
  await installOnce(PM2_FOLDER, [`pm2@${PM2}`]);
}

export async function buildHostler() {
  if (process.env.HOSTLER_BIN) {
    if (!existsSync(process.env.HOSTLER_BIN)) throw new Error(`HOSTLER_BIN: no file ${process.env.HOSTLER_BIN}`);
    return;
  }
  need('cargo', 'Rust builds Hostler: https://rustup.rs');
  await mustRun('cargo', ['build', '--release', '--locked', '-p', 'hostler']);
}

export async function buildApp() {
  await installModules();
  await mustRun('npm', ['run', '--silent', 'build'], { cwd: app.dir });
}

/** The version of `program`: the first number with a dot in its output. Null if the program is missing. */
export function version(program, flag = '--version') {
  const result = spawnSync(program, [flag], { encoding: 'utf8' });
  return /v?(\d+\.\d[^\s,\]]*)/.exec(`${result.stdout}${result.stderr}`)?.[1] ?? null;
}

export function pm2Version() {
  return installedVersion(PM2_FOLDER, 'pm2');
}

/** The version of vegeta in go.sum. */
export function vegetaVersion() {
  if (!has('go')) return null;
  const args = ['list', '-m', '-f', '{{.Version}}', 'github.com/tsenart/vegeta/v12'];
  return execFileSync('go', args, { cwd: join(BENCH, 'load'), encoding: 'utf8' }).trim();
}

function need(program, why) {
  if (!has(program)) throw new Error(`${program} is missing. ${why}`);
}
