// A terminal for commands of a guide that run until Ctrl-C, such as `hostler start`. Knows no framework.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { eventually, freePort } from '@hostler/testkit';

import { environment } from './app.mjs';

/** Below the repository, so that an app finds the packages of the repository. */
const HOME = fileURLToPath(new URL('../../../target/', import.meta.url));

/** An empty folder that the test removes. */
export async function emptyFolder(t) {
  const folder = await mkdtemp(`${HOME}guide-`);
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** Free addresses for a Hostler, in place of those of its configuration or of `hostler run`. */
export async function freeAddresses() {
  const [listen, admin] = await Promise.all([freePort(), freePort()]);
  return { url: `http://127.0.0.1:${listen}`, env: { HOSTLER_SERVER_LISTEN: `127.0.0.1:${listen}`, HOSTLER_SERVER_ADMIN: `127.0.0.1:${admin}` } };
}

/** Runs one command in the background. Resolves with a function that presses Ctrl-C and waits; the test calls it in any case. */
export function inBackground(t, command, { cwd, env = {} }) {
  const child = spawn('sh', ['-c', `exec ${command.trim()}`], { cwd, env: { ...environment(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const log = [];
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => log.push(text));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT');
    await ended;
  };
  t.after(stop);
  const answers = (path, init) => eventually(`an answer of ${command.trim()}`, async () => {
    if (child.exitCode !== null) throw new Error(`it has ended with ${child.exitCode}: ${log.join('')}`);
    const answer = await fetch(path, init);
    if (!answer.ok) throw new Error(`${answer.status}: ${log.join('')}`);
    return answer.text();
  });
  return { stop, answers, log };
}
