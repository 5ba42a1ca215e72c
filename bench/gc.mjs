// node bench/gc.mjs [--rounds N] [--load 0.7] [--seconds N] measures whether garbage collection between requests (gc =
// "idle") makes waiting times shorter. Two equal Hostlers with two workers each, one with that setting, take turns under
// the same arrivals. Prints the figures for docs/concepts/gc.md, and writes no file.
import { parseArgs } from 'node:util';
import { app } from './lib/app.mjs';
import { closedLoop, openLoop } from './lib/load.mjs';
import { inRounds } from './lib/rounds.mjs';
import { createSession } from './lib/session.mjs';
import { pairedRatio, summaryText } from './lib/statistics.mjs';
import { buildApp, buildHostler, buildLoad } from './lib/tools.mjs';
import { startWithWorkers } from './peers/hostler.mjs';

const WORKERS = 2;
const MIX = { longShare: 0.1, edges: 32 };
const WARM_SECONDS = 15;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    load: { type: 'string', default: '0.7' },
    seconds: { type: 'string', default: '12' },
  },
});
const [rounds, load, seconds] = [values.rounds, values.load, values.seconds].map(Number);

const session = createSession();
process.on('exit', session.abandon);
try {
  await buildLoad();
  await buildApp();
  await buildHostler();
  const ways = {};
  for (const gc of ['off', 'idle']) {
    ways[gc] = await startWithWorkers(session, { app, workers: WORKERS, concurrency: 1, queueTimeout: '5s', gc });
    await closed(ways[gc]);
  }
  // Both are measured in the same way: the first versions of this script compared workers with different warm-ups.
  const capacity = ((await closed(ways.off)) + (await closed(ways.idle))) / 2;
  console.log(`capacity ${capacity.toFixed(1)} pages/s; load ${load} of it, ${seconds} s a run, ${rounds} rounds`);

  const progress = { step: (text) => console.log(text) };
  const rows = await inRounds({ rounds, peers: ['idle', 'off'], progress, told }, ({ round, peer }) => {
    const at = { port: ways[peer].port, app, mix: MIX, rate: load * capacity, seconds, seed: round };
    return openLoop(session, at);
  });
  for (const figure of ['p50_us', 'p99_us']) {
    const ratio = pairedRatio(rows, { one: 'idle', other: 'off', value: (row) => row[figure] });
    console.log(`${figure.slice(0, 3)} with gc = "idle", as a share of that without: median ${summaryText(ratio)}`);
  }
} finally {
  await session.close();
}

/** Closed loop with one of them. Returns pages per second. */
async function closed({ port }) {
  const { ok, seconds: took } = await closedLoop(session, { ports: [port], app, mix: MIX, seconds: WARM_SECONDS, seed: 1, each: 2 * WORKERS });
  return ok / took;
}

function told([{ peer, load1, p50_us, p99_us, planned, ok }]) {
  return `${peer.padEnd(4)}  p50 ${ms(p50_us)}  p99 ${ms(p99_us)}  ${ok} of ${planned} answered  (load1 ${load1})`;
}

function ms(us) {
  return `${(us / 1000).toFixed(1)} ms`;
}
