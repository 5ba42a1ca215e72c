// One run of the bench: its temporary folder, its ports and its processes. close() always ends exactly those processes
// and removes that folder. Knows nothing of peers or scenarios.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const STOP_MS = 5000;

export function createSession() {
  const dir = mkdtempSync(join(tmpdir(), 'hostler-bench-'));
  const running = new Set();
  let serial = 0;
  let isClosing = false;

  /** Starts a program in its own process group; `cpu` pins it to a core. */
  function start(command, args, { name = basename(command), ...options } = {}) {
    // After Ctrl-C a part whose programs have ended could otherwise go on with its next step.
    if (isClosing) throw new Error(`${name} is not started: the bench ends`);
    const started = startProcess(command, args, { name, log: path(`${name}.log`), ...options });
    running.add(started);
    started.exit.then(() => running.delete(started));
    return started;
  }

  /** Starts a program whose output is needed. `printed` is its output at its end; it rejects with the last lines if the program fails. */
  function begin(command, args, options = {}) {
    const started = start(command, args, { ...options, stdout: 'pipe' });
    const chunks = [];
    started.child.stdout.on('data', (chunk) => chunks.push(chunk));
    const closed = new Promise((resolve) => started.child.on('close', resolve));
    const printed = started.exit.then(async (how) => {
      if (how !== 0) throw new Error(`${started.name} ended with ${how}\n${tail(started)}`);
      await closed;
      return Buffer.concat(chunks).toString();
    });
    printed.catch(() => {}); // its caller gets the error; until then it must not end the bench
    return { started, printed };
  }

  /** Runs a program to its end and returns its output. Throws with the last output if it fails. */
  function run(command, args, options) {
    return begin(command, args, options).printed;
  }

  async function stop(started) {
    if (started.ended !== null) return;
    signal(started, 'SIGTERM');
    const late = delay(STOP_MS, 'late', { ref: false });
    if ((await Promise.race([started.exit, late])) === 'late') {
      signal(started, 'SIGKILL');
      await started.exit;
    }
  }

  async function close() {
    isClosing = true;
    await Promise.all([...running].map(stop));
    rmSync(dir, { recursive: true, force: true });
  }

  /** For the exit of this process, when nothing can be awaited any more. */
  function abandon() {
    for (const started of running) signal(started, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }

  function path(name) {
    return join(dir, `${(serial += 1)}-${name}`);
  }

  function write(name, text) {
    const file = path(name);
    writeFileSync(file, text);
    return file;
  }

  return { dir, start, begin, run, stop, close, abandon, write, path };
}

/**
 * Each process gets its own process group, so that it can be ended with its children. But all are in one session: Linux divides
 * the CPU between sessions first (sched_autogroup), so peers in one session would get less of it than peers in several.
 * `detached` would make a session for each.
 */
const IN_A_GROUP = ['perl', '-e', 'setpgrp(0, 0); exec { $ARGV[0] } @ARGV or die "$ARGV[0]: $!\\n"'];

function startProcess(command, args, { name, log, cpu, env, cwd, stdout }) {
  const out = openSync(log, 'w');
  // perl and taskset replace themselves by the program (exec), so the process id is the program's.
  const pinned = cpu === undefined ? [] : ['taskset', '-c', String(cpu)];
  const [file, ...rest] = [...IN_A_GROUP, ...pinned, command, ...args];
  const stdio = ['ignore', stdout ?? out, out];
  const child = spawn(file, rest, { cwd, env: { ...process.env, ...env }, stdio });
  closeSync(out);
  const started = { name, child, pid: child.pid, log, ended: null };
  started.exit = new Promise((resolve) => {
    const end = (how) => {
      started.ended = how;
      signal(started, 'SIGKILL'); // children that outlive it are still in its group
      resolve(how);
    };
    child.on('error', (error) => end(error.message));
    child.on('exit', (code, by) => end(by ?? code));
  });
  return started;
}

function signal(started, name) {
  if (started.pid === undefined) return; // it never ran
  try {
    process.kill(-started.pid, name); // the group that this child leads, so its own children end too
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** The last lines of a process, for an error message. */
export function tail(started, lines = 15) {
  return readFileSync(started.log, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
