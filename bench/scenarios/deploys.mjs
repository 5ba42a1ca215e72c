// Deploys: the workers are replaced again and again under a steady load. Measures failed requests, the time of a deploy,
// and waiting times meanwhile.
import { haproxy } from '../peers/haproxy.mjs';
import { startRestartable } from '../peers/hostler.mjs';
import { startPm2 } from '../peers/pm2.mjs';
import { MIX, QUEUE_TIMEOUT, WARM_AT_ONCE, WORKERS, stopAll } from '../peers/renders.mjs';
import { startRolling } from '../peers/rolling.mjs';
import { setTimeout as delay } from 'node:timers/promises';
import { app } from '../lib/app.mjs';
import { measureCapacity } from '../lib/capacity.mjs';
import { get } from '../lib/http.mjs';
import { closedLoop, loopDuring } from '../lib/load.mjs';
import { around } from '../lib/phases.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds } from '../lib/rounds.mjs';
import { buildApp, buildHostler, buildLoad, installPackages, installPm2 } from '../lib/tools.mjs';

const LOAD = 0.5;
const CLIENT_TIMEOUT = 10;
/** The time limit of a run, which normally stops after its deploys. */
const LONGEST = 600;

const PEERS = {
  hostler: (session) => startRestartable(session, { app, workers: WORKERS, concurrency: 1, queueTimeout: QUEUE_TIMEOUT }),
  pm2: (session) => startPm2(session, { app, workers: WORKERS }),
  rolling: (session) => startRolling(session, { app, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT }),
};

export const deploys = {
  name: 'deploys',
  peers: Object.keys(PEERS),
  titles: { hostler: 'Hostler restart', pm2: 'pm2 reload', rolling: 'HAProxy, workers replaced by a script' },
  settings: { rounds: 1, deploys: 20, pause: 1, warmup: 4, capacitySeconds: 10 },
  quick: { rounds: 1, deploys: 2, pause: 1, warmup: 2, capacitySeconds: 3 },

  lasts: ({ rounds, deploys: count, pause, warmup, capacitySeconds }, peers) =>
    2 * warmup + capacitySeconds + rounds * peers.length * (warmup + count * (pause + 2)),

  async prepare(peers) {
    if (peers.includes('rolling')) await installPackages(haproxy.packages);
    if (peers.includes('pm2')) await installPm2();
    await buildLoad();
    await buildApp();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, deploys: count, pause, warmup, capacitySeconds }) {
    const plannedSeconds = deploys.lasts({ rounds, deploys: count, pause, warmup, capacitySeconds }, peers);
    const progress = createProgress({ steps: 1 + rounds * peers.length, plannedSeconds });
    progress.begin('deploys');
    const capacity = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds: capacitySeconds });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const rows = await inRounds({ rounds, peers, progress, told }, (turn) => oneRun(session, { ...turn, count, pause, warmup, capacity }));
    const settings = { rounds, deploys: count, pause, warmup, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name };
    return { settings: { ...settings, load: LOAD, patience: CLIENT_TIMEOUT }, capacity, rows };
  },
};

async function oneRun(session, { peer, round, count, pause, warmup, capacity }) {
  const { port, processes, deploy } = await PEERS[peer](session);
  await closedLoop(session, { ports: [port], app, mix: MIX, seconds: warmup, seed: round, each: WARM_AT_ONCE });
  const load = { port, app, mix: MIX, seed: round, patience: CLIENT_TIMEOUT, rate: LOAD * capacity.rate, longest: LONGEST };
  const { report, done } = await loopDuring(session, load, () => deployAgainAndAgain({ port, deploy, count, pause }));
  await stopAll(session, processes());
  const { hits, errors, began } = report;
  const spans = done.map(({ from, to }) => ({ from: from - began / 1000, to: to - began / 1000 }));
  return { ...around(hits, spans), deploys_ms: spans.map(({ from, to }) => to - from), errors };
}

/** Runs the deploys. Returns the start and end of each in milliseconds since 1970. */
async function deployAgainAndAgain({ port, deploy, count, pause }) {
  const spans = [];
  let old = await rendering(port);
  for (let i = 0; i < count; i += 1) {
    await delay(pause * 1000);
    const from = Date.now();
    await deploy();
    spans.push({ from, to: Date.now() });
    const now = await rendering(port);
    const left = [...now].filter((pid) => old.has(pid));
    if (left.length > 0) throw new Error(`the deploy is over, and process ${left} of before still answers`);
    old = now;
  }
  return spans;
}

/** The process that renders: each page names it. */
async function rendering(port) {
  const pids = new Set();
  for (let i = 0; i < 6; i += 1) pids.add(/process (\d+)/.exec((await get(port, app.short)).body)?.[1]);
  if (pids.has(undefined)) throw new Error('a page does not say which process has rendered it');
  return pids;
}

function told([{ peer, failed, refused, asked, deploys_ms: took, during }]) {
  const mean = took.reduce((sum, ms) => sum + ms, 0) / took.length;
  return `${peer}: ${took.length} deploys of ${(mean / 1000).toFixed(1)} s, ${asked} requests, ${failed} failed, ${refused} refused, `
    + `p99 ${(during.p99_us / 1000).toFixed(0)} ms during a deploy`;
}
