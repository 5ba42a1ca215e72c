// Starts a server as in production, on a free port, and waits for the line with its address.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** `{ url, log, ended }`. It stops at the end of the test. */
export async function startProcess(t, { file, env = {} }) {
  const path = file.startsWith('/') ? file : fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [path], { env: { ...process.env, NODE_ENV: 'production', PORT: '0', ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const log = [];
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line));
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /http:\/\/localhost:\d+/.exec(line);
    if (found) return { url: found[0].replace('localhost', '127.0.0.1'), log, ended, pid: child.pid };
  }
  throw new Error(`the server ended before it listened: ${log.join('\n')}`);
}

/** The page's server with an API. It has no time limits except those of the test, because a busy machine would exceed any of them some day. */
export function startPage(t, { api, env = {}, file = '../../dist/server.mjs' }) {
  return startProcess(t, { file, env: { API_URL: api.url, API_TIMEOUT: '600000', RENDER_TIMEOUT: '600000', ...env } });
}
