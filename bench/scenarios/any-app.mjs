// Any app with nothing set: Hostler that finds the concurrency itself, beside the best fixed number, Node's cluster and PM2,
// for apps that wait, apps that compute, a mix of both, event streams, and 500 first requests at once.
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ANY_PEERS, ANY_TITLES, WORKERS, startAny } from '../peers/any.mjs';
import { stopAll } from '../peers/renders.mjs';
import { bursts } from '../lib/burst.mjs';
import { get } from '../lib/http.mjs';
import { closedLoop } from '../lib/load.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { eachRound } from '../lib/rounds.mjs';
import { percentile } from '../lib/statistics.mjs';
import { buildBurst, buildHostler, buildLoad, installPackages, installPm2 } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';

/** `fixed` is the best fixed number of each cell. Of several, all are measured, and the report takes the best one for each figure. */
const CELLS = {
  wait20: { measure: loop, title: 'waits 20 ms', path: '/?wait=20', atOnce: 100, fixed: [512] },
  wait200: { measure: loop, title: 'waits 200 ms', path: '/?wait=200', atOnce: 200, fixed: [512] },
  data: { measure: loop, title: 'waits 20 ms, then computes 2 ms, 50 at once', path: '/?wait=20&compute=2', atOnce: 50, fixed: [512], computes: true },
  dataLight: { measure: loop, title: 'waits 20 ms, then computes 2 ms, 8 at once', path: '/?wait=20&compute=2', atOnce: 8, fixed: [512], computes: true },
  page: { measure: loop, title: 'computes 20 ms', path: '/?compute=20', atOnce: 20, fixed: [1], computes: true },
  mixed: {
    measure: mix, title: 'mixed', short: '/?wait=5', long: '/?compute=30', longShare: 0.1, atOnce: 20, fixed: [1, 8, 64], computes: true,
  },
  streams: { measure: besideStreams, title: 'a page beside event streams', path: '/', streams: 2, pages: 50, fixed: [512] },
  flood: { measure: flood, title: 'cold flood', path: '/?wait=200', atOnce: 500, fixed: [512] },
};
const EDGES = 32;
/** After the warm-up: an app still works on requests whose client is gone. */
const REST_MS = 500;
/** A page that has no response by then has failed. */
const PATIENCE_MS = 5000;

export const anyApp = {
  name: 'any-app',
  peers: Object.keys(ANY_PEERS),
  titles: ANY_TITLES,
  // A page that computes 20 ms comes 100 times a second at most, and p99 needs many.
  settings: { rounds: 2, seconds: 2, computeSeconds: 3, warmup: 1 },
  quick: { rounds: 1, seconds: 1, computeSeconds: 1, warmup: 1 },

  lasts: ({ rounds, ...lengths }, peers) => rounds * runsEach(peers, lengths).reduce((sum, one) => sum + one, 0),

  async prepare(peers) {
    await installPackages(['wrk']);
    await buildLoad();
    await buildBurst();
    if (peers.includes('pm2')) await installPm2();
    if (peers.includes('auto') || peers.includes('fixed')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, computeSeconds, warmup }) {
    const steps = rounds * runsEach(peers, { seconds, computeSeconds, warmup }).length;
    const progress = createProgress({ steps, plannedSeconds: anyApp.lasts({ rounds, seconds, computeSeconds, warmup }, peers) });
    progress.begin('any-app');
    const rows = await eachRound({ rounds, peers, progress, told }, (turn) => oneRound(session, { ...turn, seconds, computeSeconds, warmup }));
    const cells = Object.fromEntries(Object.entries(CELLS).map(([name, { measure: _, ...cell }]) => [name, cell]));
    return { settings: { rounds, seconds, computeSeconds, warmup, workers: WORKERS, edges: EDGES, patience: PATIENCE_MS }, cells, rows };
  },
};

/** Each run has new processes, so that no peer knows anything from the run before. */
async function oneRound(session, { order, step, warmup, ...lengths }) {
  for (const [cell, about] of Object.entries(CELLS)) {
    for (const peer of order) {
      for (const set of inCell(peer, about)) {
        const running = await startAny(session, peer, set);
        await step({ cell, peer, ...set }, () => about.measure(session, { ...about, running, warmup, seconds: about.computes ? lengths.computeSeconds : lengths.seconds }));
        await stopAll(session, running.processes);
      }
    }
  }
}

/** The seconds of each run of a round. */
function runsEach(peers, lengths) {
  return Object.values(CELLS).flatMap((cell) => peers.flatMap((peer) => inCell(peer, cell).map(() => 1.5 + lasting(cell, lengths))));
}

/** The settings with which a peer is measured in a cell. */
function inCell(peer, { fixed }) {
  return peer === 'fixed' ? fixed.map((concurrency) => ({ concurrency })) : [{}];
}

function lasting({ measure, computes }, { seconds, computeSeconds, warmup }) {
  return measure === loop || measure === mix ? warmup + REST_MS / 1000 + (computes ? computeSeconds : seconds) : 1;
}

/** Requests of one kind in a closed loop. */
async function loop(session, { running, path, atOnce: connections, warmup, seconds }) {
  const at = { port: running.port, path, connections };
  await wrk(session, { ...at, seconds: warmup });
  await delay(REST_MS);
  const { requests, errors, ...figures } = await cpuDuring(running.processes, () => wrk(session, { ...at, seconds }));
  const { status: refused, ...others } = errors;
  return { ok: requests - refused, refused, failed: Object.values(others).reduce((sum, one) => sum + one, 0), ...figures };
}

/** Two kinds in a closed loop, each with its own percentiles. */
async function mix(session, { running, short, long, longShare, atOnce: each, warmup, seconds }) {
  const at = { ports: [running.port], app: { short, long }, mix: { longShare, edges: EDGES }, seed: 1, each };
  await closedLoop(session, { ...at, seconds: warmup });
  await delay(REST_MS);
  return cpuDuring(running.processes, () => closedLoop(session, { ...at, seconds }));
}

/** Pages, one after another and each on its own connection, while event streams are open. */
async function besideStreams(session, { running, path, streams, pages }) {
  const open = [];
  for (let i = 0; i < streams; i += 1) open.push(await stream(running.port));
  const times = [];
  const before = performance.now();
  for (let i = 0; i < pages; i += 1) {
    const asked = performance.now();
    const status = await get(running.port, path, { timeout: PATIENCE_MS }).then((answer) => answer.status, () => 0);
    times.push({ status, us: Math.round((performance.now() - asked) * 1000) });
  }
  const seconds = (performance.now() - before) / 1000;
  const lost = open.filter((one) => !one.isOpen()).length;
  for (const one of open) one.close();
  return { ...counted(times), seconds, lost };
}

/** An open event stream, once its first event has come. One without an event is lost. */
function stream(port) {
  return new Promise((resolve) => {
    let isOpen = false;
    const asked = request({ port, host: '127.0.0.1', path: '/events', agent: false });
    const opened = () => resolve({ isOpen: () => isOpen, close: () => asked.destroy() });
    const end = () => {
      isOpen = false;
      opened();
    };
    asked.setTimeout(PATIENCE_MS, () => asked.destroy());
    asked.on('error', end).on('close', end);
    asked.on('response', (response) => {
      response.on('error', end);
      response.on('data', () => {
        isOpen ||= response.statusCode === 200;
        opened();
      });
    });
    asked.end();
  });
}

/** Requests that start at one signal, as the first ones after the start. */
async function flood(session, { running, path, atOnce: count }) {
  const targets = { flood: `http://127.0.0.1:${running.port}${path}` };
  return cpuDuring(running.processes, async () => {
    const [{ took_us, times_us }] = await bursts(session, { targets, count, turns: 1, each: true, pause: '0s' });
    const times = Object.entries(times_us).flatMap(([how, all]) => all.map((us) => ({ status: Number(how) || 0, us })));
    return { ...counted(times), seconds: took_us / 1e6 };
  });
}

/** A refusal or a failure counts as a response that never came, so that no peer is faster because it refuses. */
function counted(times) {
  const isOk = ({ status }) => status >= 200 && status < 300;
  const waits = times.map((one) => (isOk(one) ? one.us : Infinity));
  const refused = times.filter((one) => !isOk(one) && one.status > 0).length;
  const ok = times.filter(isOk).length;
  return { ok, refused, failed: times.length - ok - refused, p50_us: percentile(waits, 50), p99_us: percentile(waits, 99) };
}

function told([{ cell, peer, concurrency, ok, seconds, p50_us, p99_us, long, refused, failed, lost = 0 }]) {
  const bad = [[refused, 'refused'], [failed, 'FAILED'], [lost, 'streams LOST']].filter(([count]) => count > 0).map(([count, how]) => `, ${count} ${how}`).join('');
  const more = long ? `, computing p50 ${ms(long.p50_us)}, p99 ${ms(long.p99_us)}` : '';
  return `${cell}  ${peer}${concurrency ? ` ${concurrency}` : ''}: ${Math.round(ok / seconds)}/s, p50 ${ms(p50_us)}, p99 ${ms(p99_us)}${more}${bad}`;
}

const ms = (us) => `${((us ?? Infinity) / 1000).toFixed(1)} ms`;
