// Runs wrk once and reads its figures. Knows wrk, not what it points at.
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));

/** One thread, keep-alive, closed loop: `connections` requests at once, each followed by the next; `body` is a file to POST. */
export async function wrk(session, { port, path = '/rooms/48213', connections, seconds, cpu, body, tls = false }) {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', SCRIPT, `${tls ? 'https' : 'http'}://127.0.0.1:${port}${path}`];
  return parseWrk(await session.run('wrk', args, { cpu, env: body ? { WRK_BODY: body } : {} }));
}

export function parseWrk(text) {
  const line = /^JSON (\{.*\})$/m.exec(text);
  if (!line) throw new Error(`wrk printed no figures:\n${text}`);
  const { requests, microseconds, p50, p99, ...errors } = JSON.parse(line[1]);
  return { requests, seconds: microseconds / 1e6, p50_us: p50, p99_us: p99, errors };
}
