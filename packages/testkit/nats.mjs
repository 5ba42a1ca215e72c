// A real nats-server in a process of its own, on a free port. Knows no message.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Named by TEST_NATS_SERVER, or built by `node scripts/tools.mjs`, or installed; otherwise undefined, said aloud. */
export function natsProgram() {
  const named = process.env.TEST_NATS_SERVER;
  if (named && !existsSync(named)) throw new Error(`TEST_NATS_SERVER: there is no file ${named}`);
  const found = named ?? [join(ROOT, 'target/tools/nats-server'), 'nats-server'].find((each) => spawnSync(each, ['-v']).status === 0);
  if (!found) console.warn('!!! SKIPPED: nats-server is missing (node scripts/tools.mjs builds it)');
  return found;
}

/** Starts one and waits until it listens; undefined where there is none. `host`: on which of the machine's addresses. */
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
