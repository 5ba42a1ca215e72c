// Render tail: the waiting times for a page under open-loop Poisson load, with two workers behind each peer.
import { MIX, QUEUE_TIMEOUT, RENDERS, RENDER_TITLES, WARM_AT_ONCE, WORKERS, prepareRenders, stopAll } from '../peers/renders.mjs';
import { app } from '../lib/app.mjs';
import { measureCapacity } from '../lib/capacity.mjs';
import { closedLoop, openLoop } from '../lib/load.mjs';
import { createProgress } from '../lib/progress.mjs';
import { eachRound, rotated } from '../lib/rounds.mjs';

const LOADS = [0.5, 0.7, 0.9];

export const tail = {
  name: 'tail',
  peers: Object.keys(RENDERS),
  titles: RENDER_TITLES,
  settings: { rounds: 5, seconds: 12, warmup: 5, capacitySeconds: 15 },
  quick: { rounds: 1, seconds: 3, warmup: 2, capacitySeconds: 3 },

  prepare: prepareRenders,

  async run(session, { peers, rounds, seconds, warmup, capacitySeconds }) {
    const steps = 1 + rounds * peers.length * LOADS.length;
    const perRound = peers.length * (warmup + 1 + LOADS.length * (seconds + 0.5));
    const progress = createProgress({ steps, plannedSeconds: 2 * warmup + capacitySeconds + rounds * perRound });
    progress.begin('render tail');
    const capacity = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds: capacitySeconds });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const rows = await eachRound({ rounds, peers, progress, told }, (turn) => oneRound(session, { ...turn, seconds, warmup, capacity }));
    const settings = { rounds, seconds, warmup, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name };
    return { settings: { ...settings, short: app.short, long: app.long }, loads: LOADS, capacity, rows };
  },
};

/**
 * New processes for all peers, with the same warm-up, then each load with all peers in turn. The others stay up and idle: a
 * peer that starts again for each load would spend most of its time warming up.
 */
async function oneRound(session, { round, order, step, seconds, warmup, capacity }) {
  const running = new Map();
  for (const peer of order) {
    running.set(peer, await RENDERS[peer](session));
    await closedLoop(session, { ports: [running.get(peer).port], app, mix: MIX, seconds: warmup, seed: round, each: WARM_AT_ONCE });
  }
  for (const [i, load] of LOADS.entries()) {
    const seed = round * 100 + i; // the same arrivals for every peer of this round
    for (const peer of rotated(order, i)) {
      const at = { port: running.get(peer).port, app, mix: MIX, rate: load * capacity.rate, seconds, seed };
      await step({ load, peer }, () => openLoop(session, at));
    }
  }
  for (const { processes } of running.values()) await stopAll(session, processes);
}

function told([{ load, peer, p50_us, p99_us, refused, failed }]) {
  const bad = `${refused > 0 ? `, ${refused} refused` : ''}${failed > 0 ? `, ${failed} FAILED` : ''}`;
  return `load ${load}  ${peer}: p50 ${ms(p50_us)}, p99 ${ms(p99_us)}${bad}`;
}

const ms = (us) => `${(us / 1000).toFixed(1)} ms`;
