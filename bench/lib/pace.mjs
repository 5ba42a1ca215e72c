// Runs the open loop for high rates (bench/upstream/src/bin/bench-pace). Knows the generator, not what it points at.
import { firstOfAll, isPermitted } from './priority.mjs';
import { stolen } from './procfs.mjs';
import { paceBinary } from './tools.mjs';

const PRIORITY = 50;
let warned = false;

/** It stands for other machines: when a request is due, nothing of this one may come first. */
function punctually(command) {
  if (!isPermitted() && !warned) {
    warned = true;
    console.error('bench-pace runs without real-time priority (`chrt -f` is not permitted here): it will be late when others want its core.');
  }
  return firstOfAll(PRIORITY, command);
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
  return { rate, ...figures, real_time: isPermitted(), stolen_ms: stolen() - before };
}
