// A real memcached in a process of its own, on a free port. Knows no item.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.mjs';

/** Named by TEST_MEMCACHED, or installed; otherwise undefined, said aloud. */
export function memcachedProgram() {
  const named = process.env.TEST_MEMCACHED;
  if (named && !existsSync(named)) throw new Error(`TEST_MEMCACHED: there is no file ${named}`);
  const found = named ?? (spawnSync('memcached', ['-V']).status === 0 ? 'memcached' : undefined);
  if (!found) console.warn('!!! SKIPPED: memcached is missing (apt-get install memcached)');
  return found;
}

/** Starts one and waits until it listens; undefined where there is none. */
export async function startMemcached() {
  const program = memcachedProgram();
  if (!program) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'memcached-'));
  const file = join(folder, 'port');
  // -1 is a port of its own choice; started by root it wants to be told to stay so.
  const child = spawn(program, ['-u', 'root', '-l', '127.0.0.1', '-U', '0', '-p', '-1'], {
    stdio: 'ignore',
    env: { ...process.env, MEMCACHED_PORT_FILENAME: file },
  });
  const ended = once(child, 'exit');
  const port = await eventually('memcached to listen', () => {
    if (child.exitCode !== null) throw new Error(`memcached ended (${child.exitCode})`);
    return existsSync(file) && /TCP INET: (\d+)/.exec(readFileSync(file, 'utf8'))?.[1];
  });
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { pid: child.pid, address: `127.0.0.1:${port}`, stop };
}
