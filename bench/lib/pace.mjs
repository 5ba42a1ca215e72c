// Runs the open loop for high rates (bench/upstream/src/bin/bench-pace.rs). Knows the generator, not what it points at.
import { paceBinary } from './tools.mjs';

/** It stands for other machines, as the generator of open loops does: see there. */
const asOtherMachines = (command) => (process.getuid() === 0 ? ['nice', '-n', '-10', ...command] : command);

/** Poisson arrivals at `rate` a second for one path; figures as those of `openLoop`. It takes the whole core `cpu`. */
export async function pace(session, { port, path, rate, seconds, connections, seed, cpu }) {
  const args = [`127.0.0.1:${port}`, path, rate.toFixed(1), String(seconds), String(connections), String(seed)];
  const [program, ...rest] = asOtherMachines([paceBinary, ...args]);
  return JSON.parse(await session.run(program, rest, { cpu, name: 'pace' }));
}
