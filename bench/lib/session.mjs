// One run of the bench: its temporary folder, its ports and every process it has started. Whatever happens, close()
// ends exactly those processes and removes that folder. Knows nothing of peers or scenarios.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const STOP_MS = 5000;

export function createSession() {
  const dir = mkdtempSync(join(tmpdir(), 'hostler-bench-'));
  const running = new Set();
  let serial = 0;

  /** Starts a program in its own process group; `cpu` pins it to a core (taskset replaces itself by the program). */
  function start(command, args, { cpu, env, cwd, name = command, stdout } = {}) {
    const log = join(dir, `${(serial += 1)}-${name}.log`);
    const out = openSync(log, 'w');
    const argv = cpu === undefined ? [command, ...args] : ['taskset', '-c', String(cpu), command, ...args];
    const child = spawn(argv[0], argv.slice(1), {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', stdout ?? out, out],
    });
    closeSync(out);
    const started = { name, child, pid: child.pid, log, ended: null };
    started.exit = new Promise((resolve) => {
      const end = (how) => {
        running.delete(started);
        started.ended = how;
        signal(started, 'SIGKILL'); // children that outlive it: they are still in its group
        resolve(how);
      };
      child.on('error', (error) => end(error.message));
      child.on('exit', (code, signal) => end(signal ?? code));
    });
    running.add(started);
    return started;
  }

  /** Runs a program to its end and returns what it printed; throws with its last output if it fails. */
  async function run(command, args, options = {}) {
    const started = start(command, args, { ...options, stdout: 'pipe' });
    const chunks = [];
    started.child.stdout.on('data', (chunk) => chunks.push(chunk));
    const closed = new Promise((resolve) => started.child.on('close', resolve));
    const how = await started.exit;
    if (how !== 0) throw new Error(`${started.name} ended with ${how}\n${tail(started)}`);
    await closed;
    return Buffer.concat(chunks).toString();
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
    await Promise.all([...running].map(stop));
    rmSync(dir, { recursive: true, force: true });
  }

  /** For the last moment, when nothing can be awaited any more. */
  function abandon() {
    for (const started of running) signal(started, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }

  function write(name, text) {
    const path = join(dir, `${(serial += 1)}-${name}`);
    writeFileSync(path, text);
    return path;
  }

  return { dir, start, run, stop, close, abandon, write, path: (name) => join(dir, `${(serial += 1)}-${name}`) };
}

function signal(started, name) {
  if (started.pid === undefined) return; // it never ran
  try {
    process.kill(-started.pid, name); // the group that this child leads: its own children end with it
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** The last lines a process wrote, for an error message. */
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
