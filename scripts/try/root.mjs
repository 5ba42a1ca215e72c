// A folder that holds a whole system (a fresh Debian, or an image): makes it, runs commands in it, starts a service in it. Knows no package.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mustRun, root, say } from '../steps.mjs';

/** Fresh systems are kept here, and copied for each trial. */
const FRESH = join(root, 'target/roots');
/** The first command in new name spaces: /proc, the loopback interface, then the system's own command as process 1. */
const ENTER = 'mount -t proc proc "$0/proc" && ip link set lo up && exec chroot "$@"';
const CLOSED = ['--mount', '--pid', '--net', '--fork', '--kill-child', 'sh', '-c', ENTER];
/** As CLOSED, but with the machine's network: for package managers. */
const OPEN = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', 'mount -t proc proc "$0/proc" && exec chroot "$@"'];
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A copy of a fresh Debian, made by debootstrap at the first call. */
export async function freshDebian(suite, into) {
  const kept = join(FRESH, suite);
  if (!existsSync(kept)) {
    say(`Making a fresh Debian: ${suite}`);
    mkdirSync(FRESH, { recursive: true });
    const draft = `${kept}.draft`;
    rmSync(draft, { recursive: true, force: true });
    await mustRun('debootstrap', ['--variant=minbase', suite, draft]);
    renameSync(draft, kept);
  }
  rmSync(into, { recursive: true, force: true });
  mkdirSync(dirname(into), { recursive: true });
  await mustRun('cp', ['--archive', '--reflink=auto', kept, into]);
  return into;
}

/** Runs a command in the system and returns what it printed. With `online` it has the machine's network. Fails with the output if `status` is another. */
export function runIn(system, command, { user = '0:0', env = {}, folder = '/', online = false, status = 0 } = {}) {
  const done = spawnSync('unshare', entering(system, command, { user, folder, online }), {
    encoding: 'utf8',
    maxBuffer: 50_000_000,
    env: { PATH, HOME: '/root', LANG: 'C.UTF-8', DEBIAN_FRONTEND: 'noninteractive', ...env },
  });
  if (done.status !== status) throw new Error(`"${command.join(' ')}" ended with ${done.status ?? done.signal}, not ${status}:\n${done.stdout}${done.stderr}`);
  return `${done.stdout}${done.stderr}`;
}

/** Starts a command in the system, alone in its network, as process 1. Resolves when it answers on `port` of its loopback interface. */
export async function serveIn(system, command, { port, user = '0:0', env = {}, folder = '/', capability } = {}) {
  const child = spawn('unshare', entering(system, command, { user, folder, capability }), {
    env: { PATH, LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const ended = once(child, 'exit');
  const service = {
    /** The body of the answer to a GET. */
    get: (path) => request(child.pid, `http://127.0.0.1:${port}${path}`),
    /** Sends SIGTERM to the service itself, and resolves with its exit code. */
    async stop() {
      process.kill(firstIn(child.pid), 'SIGTERM');
      const [code, signal] = await ended;
      if (code !== 0) throw new Error(`after SIGTERM the service ended with ${code ?? signal}, not 0:\n${output}`);
      return code;
    },
  };
  for (const start = Date.now(); ; ) {
    const { status, error } = answer(child.pid, `http://127.0.0.1:${port}/`);
    if (status === 0) return service;
    if (child.exitCode !== null || Date.now() - start > 30_000) {
      child.kill('SIGKILL');
      throw new Error(`"${command.join(' ')}" does not answer on port ${port} (${error}):\n${output}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function entering(system, command, { user, folder, online = false, capability }) {
  // An image from scratch has none. Docker makes it, too.
  mkdirSync(join(system, 'proc'), { recursive: true });
  const moved = folder === '/' ? command : ['sh', '-c', 'cd "$0" && exec "$@"', folder, ...command];
  const [id, group] = user.split(':');
  // chroot changes the user without a program inside: an image from scratch has none. For a capability, setpriv must be inside.
  const as = capability
    ? [system, 'setpriv', `--reuid=${id}`, `--regid=${group}`, '--clear-groups', `--inh-caps=+${capability}`, `--ambient-caps=+${capability}`, ...moved]
    : [`--userspec=${user}`, '--groups=', system, ...moved];
  return [...(online ? OPEN : CLOSED), system, ...as];
}

function request(pid, url) {
  const { status, stdout, error } = answer(pid, url);
  if (status !== 0) throw new Error(`GET ${url}: ${error}`);
  return stdout;
}

function answer(pid, url) {
  const { status, stdout, stderr } = spawnSync('nsenter', [`--target=${pid}`, '--net', 'curl', '--silent', '--show-error', '--fail', '--max-time', '5', url], { encoding: 'utf8' });
  return { status, stdout, error: stderr.trim() };
}

/** The process that `unshare` started. */
function firstIn(pid) {
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  if (!first) throw new Error('the service has ended');
  return Number(first);
}
