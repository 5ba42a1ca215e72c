// npm start: from a fresh clone to the examples running behind Hostler. Knows nothing of how Hostler works inside.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildExamples, checkToolchain, exitCode, installModules, mustRun, onSignal, root, say, stop } from './steps.mjs';
import { isAlive, successorOf } from './succession.mjs';

const PAGE = 'http://127.0.0.1:8080';
const ADMIN = 'http://127.0.0.1:8081';
const CONFIG = 'examples/hostler.toml';

checkToolchain();
await installModules();
await buildExamples();
say('Building Hostler in release mode (the first time takes a few minutes)');
await mustRun('cargo', ['build', '--release', '--locked', '-p', 'hostler']);
say(`Starting hostler with ${CONFIG}`);
const hostler = start();
await announce();

function start() {
  const program = join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'release', 'hostler');
  // In its own process group. Ctrl-C goes to all processes of the terminal's group, and npm passes it on as well; Hostler
  // would take the second copy for "stop at once". So Hostler gets signals only from this script.
  const child = spawn(program, ['start', '-c', CONFIG], { cwd: root, stdio: 'inherit', detached: true });
  child.once('error', (error) => stop(`${program} could not be started: ${error.message}`));
  child.once('exit', async (code, signal) => {
    await followSuccessors(child.pid, code);
    process.exit(exitCode(code, signal));
  });
  let last = child.pid;
  let asked; // the signal that asked to stop
  onSignal(
    passedOn((signal) => {
      asked = signal;
      if (isAlive(last)) process.kill(last, signal);
    }),
  );
  return child;

  /** After `hostler upgrade` the process that this script started ends, and another one serves. */
  async function followSuccessors(ended, code) {
    for (let next = await successorOf(ended, ADMIN, code); next; next = await successorOf(next, ADMIN)) {
      last = next;
      if (asked) process.kill(next, asked);
      while (isAlive(next)) await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** Copies of one Ctrl-C arrive within a few milliseconds. A second press takes longer. */
function passedOn(send) {
  const copies = 250;
  let last = -Infinity;
  return (signal) => {
    const now = performance.now();
    if (now - last < copies) return;
    last = now;
    send(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM');
  };
}

/** Prints the addresses when all workers are ready. If Hostler ends first, this script ends too. */
async function announce() {
  while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 200));
  if (hostler.exitCode !== null) return;
  console.log(`
  The examples   ${PAGE}
  Live page      ${ADMIN}/
  Stop           Ctrl-C
`);
}

async function isReady() {
  try {
    const answer = await fetch(`${ADMIN}/status`, { signal: AbortSignal.timeout(5_000) });
    const { pools } = await answer.json();
    return pools.every(({ workers }) => workers.every(({ state }) => state === 'ready'));
  } catch {
    return false; // it does not listen yet
  }
}
