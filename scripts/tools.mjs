// Programs that the tests call, and data that they read, and no package of the system brings: builds or installs them, and says in the
// environment where they are. Knows no test.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { has, root, run, say } from './steps.mjs';

/** Written in Go. What `tools/go.mod` names; its go.sum holds them, and all they are made of, to one version. */
const GO_PROGRAMS = [
  { command: 'nats-server', variable: 'TEST_NATS_SERVER', why: 'routes that register themselves' },
  { command: 'h2spec', variable: 'TEST_H2SPEC', why: 'conformance of HTTP/2' },
];
/** Written in Python. What `tools/requirements.txt` names, by its hashes. */
const PYTHON_PROGRAMS = [{ command: 'kosoku', variable: 'TEST_KOSOKU', why: 'conformance of WebSockets' }];
/** Suites from npm, unpacked without what they depend on: we bring our own client, and one of them would bring npm itself. */
const SUITES = [
  {
    command: 'http-cache-tests',
    version: '0.4.5',
    sha512: 'DjuwN9nUZXLTW+wav1LRESCZNVxl8SshwOy4z1pxuWbWt5/ay6sM9QQ1lebBaDO6P1IMBoK6mdf+PuVP/QNL8A==',
    variable: 'TEST_HTTP_CACHE_TESTS',
    why: 'conformance of the cache',
  },
];
/** Data out of a Python package's source. What `tools/mmdb.txt` names, by its hash. */
const DATA = [{ command: 'mmdb', variable: 'TEST_MMDB', why: 'databases of places, good and broken' }];
/** Below `target`, where the Rust tests find them without a variable too. */
const FOLDER = join(root, 'target', 'tools');
/** An environment of its own, so that nothing else on the machine changes. */
const PYTHON_FOLDER = join(FOLDER, 'python');
/** A registry that does not answer must not hold up the tests for ever. */
const PATIENCE = 10 * 60_000;

/** Makes what no variable names yet; what is missing in the end is returned, and has been said aloud. */
export async function makePrograms() {
  return [
    ...(await make(GO_PROGRAMS, FOLDER, build)),
    ...(await make(PYTHON_PROGRAMS, join(PYTHON_FOLDER, 'bin'), install)),
    ...(await make(SUITES, FOLDER, unpackSuites)),
    ...(await make(DATA, FOLDER, unpackData)),
  ];
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
  for (const { command, variable } of wanted) process.env[variable] = join(folder, command);
  return [];
}

/** Nothing, or why not. Go's own cache makes it a matter of seconds from the second time on. */
async function build() {
  if (!has('go')) return 'there is no Go on this machine: https://go.dev/dl';
  say('Building the Go programs that tests call');
  mkdirSync(FOLDER, { recursive: true });
  const code = await run('go', ['build', '-o', `${FOLDER}/`, 'tool'], { cwd: join(root, 'scripts/tools'), timeout: PATIENCE });
  return code === 0 ? undefined : `"go build" failed (exit code ${code})`;
}

/** Nothing, or why not. */
async function install() {
  if (!has('python3')) return 'there is no Python on this machine';
  say('Installing the Python programs that tests call');
  const steps = [
    ['python3', '-m', 'venv', PYTHON_FOLDER],
    [join(PYTHON_FOLDER, 'bin/python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--require-hashes', '-r', 'scripts/tools/requirements.txt'],
  ];
  for (const [command, ...args] of steps) {
    const code = await run(command, args, { cwd: root, timeout: PATIENCE });
    if (code !== 0) return `"${command} ${args.slice(0, 3).join(' ')}" failed (exit code ${code})`;
  }
  return undefined;
}

/** Nothing, or why not. */
async function unpackSuites() {
  mkdirSync(FOLDER, { recursive: true });
  for (const { command, version, sha512 } of SUITES) {
    const [folder, archive] = [join(FOLDER, command), join(FOLDER, `${command}-${version}.tgz`)];
    if (!isTrue(archive, sha512)) {
      say(`Fetching ${command}`);
      const code = await run('npm', ['pack', '--silent', `${command}@${version}`, '--pack-destination', FOLDER], { cwd: root, timeout: PATIENCE });
      if (code !== 0) return `"npm pack" failed (exit code ${code})`;
      if (!isTrue(archive, sha512)) return `${archive} is not what it was`;
    } else if (existsSync(folder)) {
      continue;
    }
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    const code = await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1']);
    if (code !== 0) return `"tar" failed (exit code ${code})`;
  }
  return undefined;
}

function isTrue(archive, sha512) {
  return existsSync(archive) && createHash('sha512').update(readFileSync(archive)).digest('base64') === sha512;
}

/** Nothing, or why not. It is unpacked once. */
async function unpackData() {
  const folder = join(FOLDER, 'mmdb');
  if (existsSync(join(folder, 'test-data'))) return undefined;
  if (!has('python3')) return 'there is no Python on this machine';
  say("Unpacking MaxMind's test databases");
  mkdirSync(folder, { recursive: true });
  const download = mkdtempSync(join(FOLDER, 'download-'));
  try {
    const pip = ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps', '--no-binary', ':all:', '--require-hashes'];
    const steps = [
      ['python3', '-m', 'venv', PYTHON_FOLDER],
      [join(PYTHON_FOLDER, 'bin/python'), ...pip, '--dest', download, '-r', 'scripts/tools/mmdb.txt'],
      ['tar', '--extract', '--strip-components=3', `--directory=${folder}`, () => `--file=${join(download, readdirSync(download)[0])}`, '--wildcards', '*/tests/data/*'],
    ];
    for (const [command, ...args] of steps) {
      // What a step names that the one before has made is looked up when it is its turn.
      const code = await run(command, args.map((arg) => (typeof arg === 'function' ? arg() : arg)), { cwd: root, timeout: PATIENCE });
      if (code !== 0) return `"${command} ${args.slice(0, 3).join(' ')}" failed (exit code ${code})`;
    }
    return undefined;
  } finally {
    rmSync(download, { recursive: true, force: true });
  }
}

// By itself, for a test that is run alone: node scripts/tools.mjs
if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await makePrograms()).length;
