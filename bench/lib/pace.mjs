// Runs the open loop for high rates (bench/upstream/src/bin/bench-pace). Knows the generator, not the server under test.
import { firstOfAll, isPermitted } from './priority.mjs';
import { stolen } from './procfs.mjs';
import { paceBinary } from './tools.mjs';

const PRIORITY = 50;
let warned = false;

/** The generator stands for other machines: when a request is due, no other process may come first. */
function punctually(command) {
  if (!isPermitted() && !warned) {
    warned = true;
    console.error('bench-pace runs without real-time priority (`chrt -f` is not permitted here): it will be late when others want its core.');
  }
  return firstOfAll(PRIORITY, command);
}

/**
 * Poisson arrivals with `rate` per second for one path. Returns the latencies from the intended starts, how late the generator
 * was, and when other processes had its core. `stolen_ms` is the time that the host of a virtual machine took from all cores
 * meanwhile. The generator uses the whole core `cpu`.
 */
export async function pace(session, { port, path, rate, seconds, connections, seed, cpu }) {
  const args = [`127.0.0.1:${port}`, path, rate.toFixed(1), String(seconds), String(connections), String(seed)];
  const [program, ...rest] = punctually([paceBinary, ...args]);
  const before = stolen();
  const figures = JSON.parse(await session.run(program, rest, { cpu, name: 'pace' }));
  return { rate, ...figures, real_time: isPermitted(), stolen_ms: stolen() - before };
}
