// Helpers of the tests: the service as a real process, and the stand-in for Flickr as its upstream. Knows no test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '@hostler/testkit';
import { createStandIn } from '../stand-in/api.js';

export const KEY = 'k3y-0f-the-tests-9d41c7';
/** Long timeouts for tests that are not about timeouts, because a machine that runs all tests at once is slow. */
export const LONG_TIMEOUTS = { TRY_TIMEOUT_MS: '60000', LOOKUP_TIMEOUT_MS: '60000' };
const SERVICE = fileURLToPath(new URL('../server.js', import.meta.url));

/** A stand-in in the test's own process. `calls` has every call so far. */
export async function startUpstream(options = {}) {
  const calls = [];
  const onCall = (call) => {
    calls.push(call);
    upstream.mostAtOnce = Math.max(upstream.mostAtOnce, calls.filter(({ over }) => !over).length);
  };
  const server = createServer(createStandIn({ keys: [KEY], perHour: 0, onCall, ...options })).listen(0, '127.0.0.1', 4096);
  await once(server, 'listening');
  const upstream = { url: `http://127.0.0.1:${server.address().port}`, calls, mostAtOnce: 0 };
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return upstream;
}

/** The service on a free port with `upstream`. `log` has the output that was read so far; a response may come before its log line. */
export async function startService(upstream, env = {}) {
  const child = launch({ PORT: '0', FLICKR_API_KEY: KEY, FLICKR_URL: `${upstream.url}/services/rest/`, ...LONG_TIMEOUTS, ...env });
  const service = { process: child, log: '' };
  const listening = new Promise((resolve, reject) => {
    const hear = (chunk) => {
      service.log += chunk;
      const found = /listening on http:\/\/localhost:(\d+)/.exec(service.log);
      if (found) resolve(`http://127.0.0.1:${found[1]}`);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('exit', () => reject(new Error(`the service ended before it listened: ${service.log}`)));
  });
  after(() => child.kill('SIGKILL'));
  service.base = await listening;
  service.get = (path, options) => get(service.base + path, options);
  service.says = (words) => eventually(`${words} in its log`, () => words.test(service.log));
  const ended = once(child, 'close');
  service.ends = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  return service;
}

export function launch(env) {
  const own = { ...process.env };
  for (const name of ['FLICKR_API_KEY', 'FLICKR_URL', 'PHOTO_ORIGINS']) delete own[name];
  return spawn(process.execPath, [SERVICE], { env: { ...own, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** One whole response. Redirects are not followed. */
export async function get(url, options) {
  const response = await fetch(url, { redirect: 'manual', ...options });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
}
