// Steps that the scripts share: runs commands, and installs and builds what a fresh clone lacks.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

const NODE_NEEDED = 20;
const LAST_OUTPUT = 10_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

export function say(text) {
  console.log(`\n==> ${text}`);
}

export function stop(message) {
  console.error(`\n${message}\n`);
  process.exit(1);
}

/**
 * Runs a command and resolves with its exit code. Its output goes to the terminal, and also to `onOutput` if that is given. A
 * signal to this script first ends the command, so that no step is left behind.
 */
export function run(command, args, { onOutput, ...options } = {}) {
  return new Promise((resolve) => {
    const stdio = ['inherit', onOutput ? 'pipe' : 'inherit', 'inherit'];
    const child = spawn(command, args, { cwd: root, stdio, ...options });
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      process.stdout.write(text);
      onOutput(text);
    });
    const forgetSignals = onSignal((signal) => {
      child.kill('SIGTERM');
      child.once('exit', () => process.exit(exitCode(null, signal)));
    });
    child.once('error', (error) => stop(`${command} could not be started: ${error.message}`));
    child.once('exit', (code, signal) => {
      forgetSignals();
      // The last output may still arrive. But a process that is left behind can keep the pipe open for ever.
      const late = setTimeout(() => {
        console.error(`\n!!! "${command} ${args.join(' ')}" has ended, but something that it started still holds its output open.`);
        child.stdout.destroy();
      }, LAST_OUTPUT);
      child.once('close', () => {
        clearTimeout(late);
        resolve(exitCode(code, signal));
      });
    });
  });
}

export async function mustRun(command, args, options) {
  const code = await run(command, args, options);
  if (code !== 0) stop(`"${command} ${args.join(' ')}" failed (exit code ${code}); the reason is above.`);
}

/** Calls `react` for each signal that asks this script to end. The returned function removes the listener. */
export function onSignal(react) {
  for (const signal of SIGNALS) process.on(signal, react);
  return () => SIGNALS.forEach((signal) => process.off(signal, react));
}

/** The exit code a shell would report. */
export function exitCode(code, signal) {
  return code ?? 128 + (constants.signals[signal] ?? 0);
}

export function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

export function checkToolchain() {
  const missing = [];
  if (Number.parseInt(process.versions.node, 10) < NODE_NEEDED) {
    missing.push(`Node.js ${NODE_NEEDED} or newer (this is ${process.version}): from nodejs.org or your system's packages`);
  }
  if (!has('cargo')) missing.push('Rust, with cargo: from rustup.rs');
  if (!has('cc')) missing.push('a C compiler, which Rust links with: "apt-get install gcc libc6-dev" or "xcode-select --install"');
  if (!has('make')) missing.push('make, which builds the allocator: "apt-get install make" or "xcode-select --install"');
  if (missing.length > 0) stop(`Missing on this machine:\n${missing.map((each) => `  * ${each}`).join('\n')}`);
}

/** `npm ci` in a folder of the repository, unless the installed modules are newer than the lockfile. */
export async function installModules(folder = '.') {
  const lockfile = join(folder, 'package-lock.json');
  if (modified(join(folder, 'node_modules/.package-lock.json')) >= modified(lockfile)) return;
  say(`Installing the npm packages named in ${lockfile}`);
  // NODE_ENV=production in the caller's environment would exclude esbuild, which every build needs.
  await mustRun('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], { cwd: join(root, folder) });
}

/**
 * Builds `target/debug/hostler` from what `cargo test --workspace` has compiled. `cargo build -p hostler` would compile 74 crates again:
 * tests ask for more features of them (tokio's `test-util`, for example), and cargo unifies features over all that one command builds.
 * A test named here brings the tests' features in; `tidy` is the smallest.
 */
export async function buildProgram() {
  await mustRun('cargo', ['build', '--workspace', '--locked', '--bin', 'hostler', '--test', 'tidy']);
}

export async function buildExamples() {
  say('Building the examples');
  // One after another, the packages first, because the examples import their output.
  for (const { name } of workspacesWith('build')) await mustRun('npm', ['run', 'build', '--silent', '--workspace', name]);
}

/** The npm workspaces with a script of this name, as [{name, folder}]. */
export function workspacesWith(script) {
  const patterns = readPackage('.').workspaces.map((pattern) => pattern.replace(/\/\*$/, ''));
  return patterns
    .flatMap(folders)
    .filter((folder) => modified(join(folder, 'package.json')) > 0)
    .map((folder) => ({ folder, ...readPackage(folder) }))
    .filter(({ scripts }) => scripts?.[script])
    .map(({ folder, name }) => ({ folder, name }));
}

function readPackage(folder) {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
}

function folders(parent) {
  if (modified(parent) === 0) return [];
  const entries = readdirSync(join(root, parent), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(parent, name)).sort();
}

function modified(path) {
  return statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
