// Single HTTP requests that the bench sends before it measures. Knows no peers.
import { Agent, request as ask } from 'node:http';
import { Agent as SecureAgent, request as askSecurely } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { tail } from './session.mjs';

const agent = new Agent({ keepAlive: false });
/** The certificates are the bench's own, so no authority has signed them. */
const secure = new SecureAgent({ keepAlive: false, rejectUnauthorized: false });

/** `at` is a port on loopback or the path of a Unix socket. A `body` is posted as JSON. */
export function get(at, path = '/', { timeout = 10_000, body, headers, tls = false } = {}) {
  const where = typeof at === 'number' ? { host: '127.0.0.1', port: at } : { socketPath: at };
  return new Promise((resolve, reject) => {
    const how = body === undefined ? { method: 'GET', headers: {} } : { method: 'POST', headers: { 'content-type': 'application/json' } };
    const request = (tls ? askSecurely : ask)({ ...where, path, agent: tls ? secure : agent, timeout, ...how, headers: { host: 'bench.test', ...how.headers, ...headers } }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks).toString() }));
    });
    request.on('timeout', () => request.destroy(new Error('no answer in time')));
    request.on('error', reject);
    request.end(body);
  });
}

/** Sends requests until one gets a 200. Throws with the last output of the first of `processes` that has ended. */
export async function untilAnswers(at, { path = '/', body, tls, processes, every = 20, within = 30_000 }) {
  const deadline = performance.now() + within;
  let last = 'no answer';
  while (performance.now() < deadline) {
    const ended = processes.find((one) => one.ended !== null);
    if (ended) throw new Error(`${ended.name} ended with ${ended.ended}\n${tail(ended)}`);
    try {
      const answer = await get(at, path, { body, tls });
      if (answer.status === 200) return answer;
      last = `status ${answer.status}`;
    } catch (error) {
      last = error.message;
    }
    await delay(every);
  }
  throw new Error(`${processes[0].name} did not answer in ${within / 1000} s (${last})\n${tail(processes[0])}`);
}
