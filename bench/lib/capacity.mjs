// Measures how much this machine can render at most. Every peer of a render scenario gets shares of this rate. Knows no
// peers.
import { closedLoop } from './load.mjs';
import { workTime } from './procfs.mjs';
import { startWorkers } from '../peers/node.mjs';

/**
 * Two bare workers, each with its own closed loop and without a proxy, while the generator runs beside them. With the CPU time
 * of a page, of all threads and of the main thread. `alone`: also measure one worker with one request at a time.
 */
export async function measureCapacity(session, { app, mix, workers: count, warmup, seconds, alone: isWanted = true }) {
  const workers = await startWorkers(session, { app, count, on: 'port' });
  const loop = { ports: workers.map(({ at }) => at), app, mix, seed: 1, each: 2 };
  await closedLoop(session, { ...loop, seconds: warmup });
  const pids = workers.map(({ started }) => started.pid);
  const before = workTime(pids);
  const { ok, refused, failed, seconds: took } = await closedLoop(session, { ...loop, seconds });
  const after = workTime(pids);
  const alone = isWanted ? await closedLoop(session, { ...loop, ports: loop.ports.slice(0, 1), each: 1, seconds: warmup }) : null;
  for (const { started } of workers) await session.stop(started);
  if (refused + failed > 0) throw new Error(`the bare workers failed ${refused + failed} requests: no capacity to speak of`);
  const page = { page_cpu_ns: (after.ran - before.ran) / ok, page_main_ns: (after.main - before.main) / ok };
  return { rate: ok / took, requests: ok, seconds: took, ...page, ...(alone ? { render_us: { short: alone.short.p50_us, long: alone.long.p50_us } } : {}) };
}
