// Overload: half a minute at twice the capacity of the workers, between two phases at half. Measures how many requests
// are answered, how fast, and the time until recovery.
import { MIX, QUEUE_TIMEOUT, RENDERS, RENDER_TITLES, WARM_AT_ONCE, WORKERS, prepareRenders, stopAll } from '../peers/renders.mjs';
import { app } from '../lib/app.mjs';
import { measureCapacity } from '../lib/capacity.mjs';
import { closedLoop, steppedLoop } from '../lib/load.mjs';
import { bySecond, phase, recovery } from '../lib/phases.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds } from '../lib/rounds.mjs';

const CALM = 0.5;
const OVERLOAD = 2;
/** Longer than the limit of the queues, so that a response at that limit still counts. */
const CLIENT_TIMEOUT = 10;

export const overload = {
  name: 'overload',
  peers: Object.keys(RENDERS),
  titles: RENDER_TITLES,
  settings: { rounds: 2, warmup: 3, before: 5, during: 30, after: 10, capacitySeconds: 10 },
  quick: { rounds: 1, warmup: 2, before: 3, during: 5, after: 5, capacitySeconds: 3 },

  prepare: prepareRenders,

  async run(session, { peers, rounds, warmup, before, during, after, capacitySeconds }) {
    const perRun = warmup + before + during + after + 3;
    const plannedSeconds = 2 * warmup + capacitySeconds + rounds * peers.length * perRun;
    const progress = createProgress({ steps: 1 + rounds * peers.length, plannedSeconds });
    progress.begin('overload');
    const capacity = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds: capacitySeconds });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const told = ([row]) => described(row, { capacity, during });
    const rows = await inRounds({ rounds, peers, progress, told }, (turn) => oneRun(session, { ...turn, warmup, before, during, after, capacity }));
    const settings = { rounds, warmup, before, during, after, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name };
    return { settings: { ...settings, calm: CALM, overload: OVERLOAD, patience: CLIENT_TIMEOUT }, capacity, rows };
  },
};

async function oneRun(session, { peer, round, warmup, before, during, after, capacity }) {
  const { port, processes } = await RENDERS[peer](session);
  await closedLoop(session, { ports: [port], app, mix: MIX, seconds: warmup, seed: round, each: WARM_AT_ONCE });
  const steps = [
    { rate: CALM * capacity.rate, seconds: before },
    { rate: OVERLOAD * capacity.rate, seconds: during },
    { rate: CALM * capacity.rate, seconds: after },
  ];
  const { hits, errors } = await steppedLoop(session, { port, app, mix: MIX, steps, seed: round, patience: CLIENT_TIMEOUT });
  await stopAll(session, processes);
  const end = before + during;
  const p99s = bySecond(hits, end + after);
  return {
    calm: phase(hits, { from: 0, to: before }),
    overload: phase(hits, { from: before, to: end }),
    recovery_s: recovery(p99s, { normal: [0, before], end }),
    p99_by_second_us: p99s,
    errors,
  };
}

function described({ peer, overload: during, recovery_s: recovery }, { capacity, during: seconds }) {
  const share = (100 * during.completed) / (capacity.rate * seconds);
  const back = Number.isFinite(recovery) ? `back to normal after ${recovery} s` : 'NOT back to normal';
  return `${peer}: ${share.toFixed(0)} % of the capacity, p99 ${(during.p99_us / 1000).toFixed(0)} ms, `
    + `${during.refused} refused, ${during.failed} failed, ${back}`;
}
