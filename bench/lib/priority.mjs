// Real-time priority, for what stands for a machine of its own. Knows not what it does.
import { spawnSync } from 'node:child_process';
import { family } from './procfs.mjs';

const CHRT = 'chrt';
let permitted;

/** Only root may give it, and not everywhere. */
export function isPermitted() {
  permitted ??= spawnSync(CHRT, ['-f', '1', 'true']).status === 0;
  return permitted;
}

/** The command, run before all that has no such priority, or a lower one. */
export function firstOfAll(priority, command) {
  return isPermitted() ? [CHRT, '-f', String(priority), ...command] : command;
}

/** What `work` gives while nothing else comes before these processes and their children on their core; null where that is not permitted. */
export async function withCore(processes, priority, work) {
  if (!isPermitted()) return null;
  const pids = processes.flatMap(({ pid }) => family(pid));
  const all = (...policy) => pids.forEach((pid) => spawnSync(CHRT, ['--all-tasks', ...policy, String(pid)]));
  all('--fifo', '--pid', String(priority));
  try {
    return await work();
  } finally {
    all('--other', '--pid', '0');
  }
}
