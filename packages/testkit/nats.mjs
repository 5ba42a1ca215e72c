// A real nats-server in its own process, on a free port. Knows no messages.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The path in TEST_NATS_SERVER, or the program that `node scripts/tools.mjs` has built, or an installed one. Otherwise
 * undefined, and a message is printed.
 */
export function natsProgram() {
  const named = process.env.TEST_NATS_SERVER;
  if (named && !existsSync(named)) throw new Error(`TEST_NATS_SERVER: there is no file ${named}`);
  const found = named ?? [join(ROOT, 'target/tools/nats-server'), 'nats-server'].find((each) => spawnSync(each, ['-v']).status === 0);
  if (!found) console.warn('!!! SKIPPED: nats-server is missing (node scripts/tools.mjs builds it)');
  return found;
}

/** Starts a server and waits until it listens. Undefined if it is not installed. `host`: which of the machine's addresses to use. */
export async function startNats({ host = '127.0.0.1', port = -1 } = {}) {
  const program = natsProgram();
  if (!program) return undefined;
  const child = spawn(program, ['--addr', host, '--port', `${port}`], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  const log = [];
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line));
  const address = await eventually('nats-server to listen', () => {
    if (child.exitCode !== null) throw new Error(`nats-server ended (${child.exitCode}): ${log.join('\n')}`);
    return log.some((line) => line.includes('Server is ready')) && /client connections on (\S+)/.exec(log.join('\n'))?.[1];
  });
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  return { pid: child.pid, address, url: `nats://${address}`, stop };
}
