// Render tail: how long people wait for a page under open-loop Poisson load, with two workers behind each peer.
import { chain } from '../peers/chain.mjs';
import { startWithWorkers } from '../peers/hostler.mjs';
import { startCluster, startWorkers } from '../peers/node.mjs';
import { app } from '../lib/app.mjs';
import { closedLoop, openLoop } from '../lib/load.mjs';
import { loadAverage } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { buildApp, buildHostler, buildLoad, installPackages } from '../lib/tools.mjs';

const WORKERS = 2;
const QUEUE_TIMEOUT = '5s'; // Airbnb's, and for Hostler and HAProxy alike
const LOADS = [0.5, 0.7, 0.9];
const MIX = { longShare: 0.1, edges: 32 };
const WARM_AT_ONCE = 2 * WORKERS;

const PEERS = {
  hostler: (session) =>
    startWithWorkers(session, { app, workers: WORKERS, concurrency: 1, queueTimeout: QUEUE_TIMEOUT }),
  cluster: (session) => startCluster(session, { app, workers: WORKERS }),
  async chain(session) {
    const workers = await startWorkers(session, { app, count: WORKERS });
    const settings = { members: workers.map(({ at }) => at), slots: 1, queueTimeout: QUEUE_TIMEOUT, probe: app.short };
    const proxies = await chain.start(session, settings);
    return { port: proxies.port, processes: [...proxies.processes, ...workers.map(({ started }) => started)] };
  },
};

export const tail = {
  name: 'tail',
  peers: Object.keys(PEERS),
  titles: { hostler: 'Hostler', cluster: "Node's cluster", chain: chain.title },
  settings: { rounds: 5, seconds: 12, warmup: 5, capacitySeconds: 15 },
  quick: { rounds: 1, seconds: 3, warmup: 2, capacitySeconds: 3 },

  async prepare(peers) {
    if (peers.includes('chain')) await installPackages(chain.packages);
    await buildLoad();
    await buildApp();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup, capacitySeconds }) {
    const steps = 1 + rounds * peers.length * (1 + LOADS.length);
    const perRound = peers.length * (warmup + 1 + LOADS.length * (seconds + 0.5));
    const progress = createProgress({ steps, plannedSeconds: 2 * warmup + capacitySeconds + rounds * perRound });
    progress.begin('render tail');
    const capacity = await measureCapacity(session, { warmup, seconds: capacitySeconds });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const rows = [];
    for (let round = 1; round <= rounds; round += 1) {
      const order = rotated(peers, round - 1);
      await oneRound(session, { round, rounds, order, seconds, warmup, capacity, rows, progress });
    }
    const settings = { rounds, seconds, warmup, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name };
    return { settings: { ...settings, short: app.short, long: app.long }, loads: LOADS, capacity, rows };
  },
};

/**
 * Two bare workers, each with a closed loop of its own, no proxy: the most that this machine renders while the generator
 * runs beside it. Every peer is then asked for the same shares of this one rate.
 */
async function measureCapacity(session, { warmup, seconds }) {
  const workers = await startWorkers(session, { app, count: WORKERS, on: 'port' });
  const loop = { ports: workers.map(({ at }) => at), app, mix: MIX, seed: 1, each: 2 };
  await closedLoop(session, { ...loop, seconds: warmup });
  const { ok, refused, failed, seconds: took } = await closedLoop(session, { ...loop, seconds });
  const alone = await closedLoop(session, { ...loop, ports: loop.ports.slice(0, 1), each: 1, seconds: warmup });
  for (const { started } of workers) await session.stop(started);
  if (refused + failed > 0) throw new Error(`the bare workers failed ${refused + failed} requests: no capacity to speak of`);
  const render_us = { short: alone.short.p50_us, long: alone.long.p50_us };
  return { rate: ok / took, requests: ok, seconds: took, render_us };
}

/**
 * Fresh processes for all, all warmed alike, then each load with all peers in turn. The others stay up meanwhile, idle:
 * a peer that was started anew for each load would spend its life warming up.
 */
async function oneRound(session, { round, rounds, order, seconds, warmup, capacity, rows, progress }) {
  const running = new Map();
  for (const peer of order) {
    const started = await PEERS[peer](session);
    running.set(peer, started);
    await closedLoop(session, { ports: [started.port], app, mix: MIX, seconds: warmup, seed: round, each: WARM_AT_ONCE });
    progress.step(`round ${round}/${rounds}  ${peer}: started and warmed`);
  }
  for (const [i, load] of LOADS.entries()) {
    const seed = round * 100 + i; // the same arrivals for every peer of this round
    for (const peer of rotated(order, i)) {
      const load1 = loadAverage();
      const at = { port: running.get(peer).port, app, mix: MIX, rate: load * capacity.rate, seconds, seed };
      const row = { round, load, peer, load1, ...(await openLoop(session, at)) };
      rows.push(row);
      progress.step(described(row, rounds));
    }
  }
  for (const { processes } of running.values()) for (const one of processes) await session.stop(one);
}

function rotated(list, by) {
  const first = by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

function described({ round, load, peer, p50_us, p99_us, refused, failed }, rounds) {
  const bad = `${refused > 0 ? `, ${refused} refused` : ''}${failed > 0 ? `, ${failed} FAILED` : ''}`;
  return `round ${round}/${rounds}  load ${load}  ${peer}: p50 ${ms(p50_us)}, p99 ${ms(p99_us)}${bad}`;
}

const ms = (us) => `${(us / 1000).toFixed(1)} ms`;
