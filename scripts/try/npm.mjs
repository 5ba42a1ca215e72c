// Installs the packed npm packages into an empty folder, as on each target, and runs what this machine can run. Publishes nothing.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { TARGETS } from '../pack/targets.mjs';
import { has } from '../steps.mjs';
import { expect, only, Skipped, VERSION } from './steps.mjs';

const APP = "require('http').createServer((request, response) => response.end('served by the app')).listen(3000);";
const EMULATORS = { x64: 'qemu-x86_64', arm64: 'qemu-aarch64' };

/** One trial for each target. */
export function npmTrials({ dist, folder }) {
  return TARGETS.map((target) => ({ name: `npm, ${target.name}`, run: () => tryTarget(target, { dist, folder: join(folder, `npm-${target.name}`) }) }));
}

async function tryTarget(target, { dist, folder }) {
  only(dist, new RegExp(`^hostler-${target.name}-\\d.*\\.tgz$`));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // All packages that are packed: npm itself must choose the one for the system.
  const packed = TARGETS.map(({ name }) => [name, readdirSync(dist).find((file) => file.startsWith(`hostler-${name}-`))]).filter(([, file]) => file);
  const optionalDependencies = Object.fromEntries(packed.map(([name, file]) => [`@hostler/${name}`, `file:${join(dist, file)}`]));
  const launcher = only(dist, /^hostler-\d.*\.tgz$/);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: { hostler: `file:${launcher}` }, optionalDependencies }));
  must('npm', ['install', '--offline', '--no-audit', '--no-fund', '--os=linux', `--cpu=${target.cpu}`, `--libc=${target.libc}`], folder);
  expect('the installed packages', readdirSync(join(folder, 'node_modules/@hostler')).join(' '), new RegExp(`^${target.name}$`));

  const program = join(folder, 'node_modules/@hostler', target.name, 'bin/hostler');
  writeFileSync(join(folder, 'hostler.toml'), '[[routes]]\nmatch = "*"\nrespond = "hello\\n"\n');
  const start = target.cpu === process.arch ? [program] : [emulator(target), ...emulated(target), program];
  expect('--version', must(start[0], [...start.slice(1), '--version'], folder), VERSION);
  expect('check', must(start[0], [...start.slice(1), 'check', '-c', 'hostler.toml'], folder), /hostler\.toml/);
  if (target.cpu !== process.arch) return 'run by an emulator: --version and check only';
  writeFileSync(join(folder, 'server.js'), APP);
  return serve(folder);
}

/** The time from the command to the first answer is what a newcomer waits for. */
async function serve(folder) {
  const port = await freePort();
  const begun = performance.now();
  const command = ['--offline', 'hostler', 'run', '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0', '--', process.execPath, 'server.js'];
  const child = spawn('npx', command, { cwd: folder, detached: true, stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = once(child, 'exit');
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/`).then((got) => got.text(), () => undefined);
    if (answer === 'served by the app') break;
    if (child.exitCode !== null || performance.now() - begun > 60_000) throw new Error('the app does not answer behind "npx hostler run"');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  // npm passes SIGTERM to no one; a terminal's Ctrl-C goes to the whole group.
  process.kill(-child.pid, 'SIGINT');
  await ended;
  return `first answer ${seconds} s after "npx hostler run"`;
}

function emulator({ cpu }) {
  const program = EMULATORS[cpu];
  if (!has(program)) throw new Skipped(`${program} is not installed (package qemu-user)`);
  return program;
}

/** A program for glibc needs the loader and the C library of its processor: the package libc6-ARCH-cross has them. */
function emulated({ libc, triple }) {
  if (libc === 'musl') return [];
  const libraries = `/usr/${triple.replace('-unknown', '')}`;
  return ['-L', libraries];
}

function must(command, args, cwd) {
  const done = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`"${command} ${args.join(' ')}" ended with ${done.status ?? done.signal}:\n${done.stdout}${done.stderr}${done.error ?? ''}`);
  return done.stdout;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
