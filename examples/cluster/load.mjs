// Visitors that send GETs to all edges in turn, over kept-alive connections, one after another. Knows addresses, no
// machines.
import { Agent, request } from 'node:http';
import { HOST } from './cluster.mjs';

/** Begins. `stop()` resolves with every GET: { at, took, status, by } in milliseconds, or { at, took, error }. */
export function visit(edges, { visitors = 16 } = {}) {
  const agent = new Agent({ keepAlive: true });
  const gets = [];
  let number = 0;
  let goesOn = true;
  const all = Array.from({ length: visitors }, async () => {
    while (goesOn) gets.push(await get(agent, edges[(number += 1) % edges.length]));
  });
  const stop = async () => {
    goesOn = false;
    await Promise.all(all);
    agent.destroy();
    return gets;
  };
  return { gets, stop };
}

function get(agent, edge) {
  const at = performance.now();
  return new Promise((resolve) => {
    const end = (outcome) => resolve({ at, took: performance.now() - at, ...outcome });
    const asked = request(edge.url, { agent, headers: { host: HOST }, timeout: 30_000 }, (answer) => {
      answer.on('error', (error) => end({ error: error.message }));
      answer.on('end', () => end({ status: answer.statusCode, by: answer.headers['x-made-by'] })).resume();
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer in 30 s')));
    asked.on('error', (error) => end({ error: error.message }));
    asked.end();
  });
}

export const failed = ({ status }) => status !== 200;
