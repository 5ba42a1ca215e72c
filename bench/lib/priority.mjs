// Real-time priority for processes that stand for other machines. Does not know what they do.
import { spawnSync } from 'node:child_process';
import { family } from './procfs.mjs';

const CHRT = 'chrt';
let permitted;

/** Only root may set it, and not on every machine. */
export function isPermitted() {
  permitted ??= spawnSync(CHRT, ['-f', '1', 'true']).status === 0;
  return permitted;
}

/** The command that runs before all processes without this priority or with a lower one. */
export function firstOfAll(priority, command) {
  return isPermitted() ? [CHRT, '-f', String(priority), ...command] : command;
}

/** The result of `work`, while these processes and their children run before all others on their core. Null if that is not permitted. */
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
