// Runs wrk once and parses its figures. Knows wrk, not the server under test.
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
const MANY = fileURLToPath(new URL('wrk-many.lua', import.meta.url));

/**
 * One thread, keep-alive, closed loop: `connections` requests at once, each followed by the next. `body` is a file to POST.
 * `many`: the files of wrk-many.lua, { requests, order, from, field }, instead of one path.
 */
export async function wrk(session, { port, path = '/rooms/48213', connections, seconds, cpu, body, many, tls = false }) {
  const script = many ? MANY : SCRIPT;
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script, `${tls ? 'https' : 'http'}://127.0.0.1:${port}${path}`];
  return parseWrk(await session.run('wrk', args, { cpu, env: { ...(body ? { WRK_BODY: body } : {}), ...(many ? environment(many) : {}) } }));
}

function environment({ requests, order, from = 0, field }) {
  return { WRK_COMMON: SCRIPT, WRK_REQUESTS: requests, WRK_FROM: String(from), ...(order ? { WRK_ORDER: order } : {}), ...(field ? { WRK_FIELD: field } : {}) };
}

export function parseWrk(text) {
  const line = /^JSON (\{.*\})$/m.exec(text);
  if (!line) throw new Error(`wrk printed no figures:\n${text}`);
  const { requests, microseconds, bytes, p50, p99, ...errors } = JSON.parse(line[1]);
  return { requests, seconds: microseconds / 1e6, bytes, p50_us: p50, p99_us: p99, errors };
}
