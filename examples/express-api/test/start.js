// Starts the API on a free port and waits for the line that names it.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export async function start(env) {
  const file = fileURLToPath(new URL('../server.js', import.meta.url));
  const child = spawn(process.execPath, [file], { env: { ...process.env, PORT: '0', ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const chunk of child.stdout) {
    const found = /http:\/\/localhost:\d+/.exec(chunk);
    if (found) return { base: found[0].replace('localhost', '127.0.0.1'), process: child };
  }
  throw new Error('the server ended before it listened');
}
