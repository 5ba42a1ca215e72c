// Runs the open loop for high rates (bench/upstream/src/bin/bench-pace). Knows the generator, not what it points at.
import { spawnSync } from 'node:child_process';
import { stolen } from './procfs.mjs';
import { paceBinary } from './tools.mjs';

const REAL_TIME = ['chrt', '-f', '50'];
let permitted;

/** It stands for other machines: when a request is due, nothing of this one may come first. Only root may say so. */
function punctually(command) {
  if (permitted === undefined) {
    permitted = spawnSync(REAL_TIME[0], [...REAL_TIME.slice(1), 'true']).status === 0;
    if (!permitted) console.error('bench-pace runs without real-time priority (`chrt -f 50` is not permitted here): it will be late when others want its core.');
  }
  return permitted ? [...REAL_TIME, ...command] : command;
}

/**
 * Poisson arrivals at `rate` a second for one path: latencies from the intended instants, how late the generator was, and when its core was
 * not its own; `stolen_ms` is what the host of a virtual machine took of all cores meanwhile. It takes the whole core `cpu`.
 */
export async function pace(session, { port, path, rate, seconds, connections, seed, cpu }) {
  const args = [`127.0.0.1:${port}`, path, rate.toFixed(1), String(seconds), String(connections), String(seed)];
  const [program, ...rest] = punctually([paceBinary, ...args]);
  const before = stolen();
  const figures = JSON.parse(await session.run(program, rest, { cpu, name: 'pace' }));
  return { rate, ...figures, real_time: permitted, stolen_ms: stolen() - before };
}
