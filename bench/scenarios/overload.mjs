// Overload: some time at twice the capacity of the workers, between two phases at half. Measures how many requests
// are answered, how fast, and the time until recovery.
import { MIX, OVERLOADED_RENDERS, QUEUE_TIMEOUT, RENDER_TITLES, WARM_AT_ONCE, WORKERS, prepareRenders, stopAll, workersOf } from '../peers/renders.mjs';
import { setTimeout as delay } from 'node:timers/promises';
import { app } from '../lib/app.mjs';
import { measureCapacity } from '../lib/capacity.mjs';
import { closedLoop, steppedLoop } from '../lib/load.mjs';
import { bySecond, phase, recovery } from '../lib/phases.mjs';
import { cpuTime, family, workTime } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds } from '../lib/rounds.mjs';

const CALM = 0.5;
const OVERLOAD = 2;
/** Longer than the limit of the queues, so that a response at that limit still counts. */
const CLIENT_TIMEOUT = 10;

export const overload = {
  name: 'overload',
  peers: Object.keys(OVERLOADED_RENDERS),
  titles: RENDER_TITLES,
  settings: { rounds: 4, warmup: 2, before: 4, during: 15, after: 7, capacitySeconds: 8 },
  quick: { rounds: 1, warmup: 1, before: 2, during: 4, after: 3, capacitySeconds: 2 },

  lasts: ({ rounds, warmup, before, during, after, capacitySeconds }, peers) =>
    2 * warmup + 2 * capacitySeconds + rounds * (warmup + capacitySeconds / 2 + 2 + peers.length * (warmup + before + during + after + 3)),

  prepare: prepareRenders,

  async run(session, { peers, rounds, warmup, before, during, after, capacitySeconds }) {
    const plannedSeconds = overload.lasts({ rounds, warmup, before, during, after, capacitySeconds }, peers);
    const progress = createProgress({ steps: 1 + rounds * (peers.length + 1), plannedSeconds });
    progress.begin('overload');
    const capacity = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds: capacitySeconds });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const told = ([row]) => described(row, { capacity, during });
    const ending = () => bare(session, { warmup, seconds: capacitySeconds / 2 });
    const rows = await inRounds({ rounds, peers, progress, told, ending }, (turn) => oneRun(session, { ...turn, warmup, before, during, after, capacity }));
    const settings = { rounds, warmup, before, during, after, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name };
    return { settings: { ...settings, calm: CALM, overload: OVERLOAD, patience: CLIENT_TIMEOUT }, capacity, rows };
  },
};

async function oneRun(session, { peer, round, warmup, before, during, after, capacity }) {
  const { port, processes } = await OVERLOADED_RENDERS[peer](session);
  await closedLoop(session, { ports: [port], app, mix: MIX, seconds: warmup, seed: round, each: WARM_AT_ONCE });
  const steps = [
    { rate: CALM * capacity.rate, seconds: before },
    { rate: OVERLOAD * capacity.rate, seconds: during },
    { rate: CALM * capacity.rate, seconds: after },
  ];
  const spent = spentAt(processes, [0, before, before + during]);
  spent.catch(() => {}); // the error is thrown where it is awaited
  const { hits, errors } = await steppedLoop(session, { port, app, mix: MIX, steps, seed: round, patience: CLIENT_TIMEOUT });
  const [calmly, busily] = await spent;
  await stopAll(session, processes);
  const end = before + during;
  const p99s = bySecond(hits, end + after);
  return {
    calm: { ...phase(hits, { from: 0, to: before }), ...calmly },
    overload: { ...phase(hits, { from: before, to: end }), ...busily },
    recovery_s: recovery(p99s, { normal: [0, before], end }),
    p99_by_second_us: p99s,
    errors,
  };
}

/** CPU time of the peer between times in seconds from now: [before the overload, during it]. */
async function spentAt(processes, times) {
  const readings = [];
  for (const [i, at] of times.entries()) {
    await delay((at - (times[i - 1] ?? 0)) * 1000);
    const workers = workTime(workersOf(processes));
    readings.push({ at: performance.now(), workers, all: cpuTime(processes.flatMap(({ pid }) => family(pid))).scheduled });
  }
  return readings.slice(1).map((last, i) => between(readings[i], last));
}

/** Timers are late, so `cpu_seconds` says how far apart the readings really were. The proxy is all that is no worker. */
function between(first, last) {
  const [ran, main, waited] = ['ran', 'main', 'waited'].map((name) => last.workers[name] - first.workers[name]);
  return { cpu_seconds: (last.at - first.at) / 1000, worker_cpu_ns: ran, worker_main_ns: main, worker_wait_ns: waited, proxy_cpu_ns: last.all - first.all - ran };
}

/** What a page costs without a proxy: in each round, because the machine changes. */
async function bare(session, { warmup, seconds }) {
  const { rate, page_cpu_ns, page_main_ns } = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds, alone: false });
  return [{ peer: 'bare', rate, page_cpu_ns, page_main_ns }];
}

function described({ peer, page_main_ns: page, overload: during, recovery_s: recovery }, { capacity, during: seconds }) {
  if (peer === 'bare') return `two workers without a proxy: ${(page / 1e6).toFixed(2)} ms of CPU for a page`;
  const share = (100 * during.completed) / (capacity.rate * seconds);
  const back = Number.isFinite(recovery) ? `back to normal after ${recovery} s` : 'NOT back to normal';
  return `${peer}: ${share.toFixed(0)} % of the capacity, p99 ${(during.p99_us / 1000).toFixed(0)} ms, `
    + `${during.refused} refused, ${during.failed} failed, ${back}`;
}
