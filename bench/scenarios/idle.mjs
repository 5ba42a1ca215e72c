// Idle: the resources of Hostler without requests, and the time it adds between a start and the first response.
import { readlinkSync, realpathSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { launch, withWorkers } from '../peers/hostler.mjs';
import { startWorker } from '../peers/node.mjs';
import { app } from '../lib/app.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { family, proportionalBytes, residentBytes } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds } from '../lib/rounds.mjs';
import { freePort } from '../lib/session.mjs';
import { buildApp, buildHostler } from '../lib/tools.mjs';

const ASK_EVERY_MS = 2;
const SETTLE_MS = 2000;

const PEERS = {
  async node(session) {
    const at = await freePort();
    return { port: at, processes: [startWorker(session, { app, at })] };
  },
  // One worker, because the plain run has one process; and two, the default on this machine.
  hostler: (session) => launch(session, withWorkers({ app, workers: 1, concurrency: 1, queueTimeout: '5s' })),
  hostler2: (session) => launch(session, withWorkers({ app, workers: 2, concurrency: 1, queueTimeout: '5s' })),
};

export const idle = {
  name: 'idle',
  peers: Object.keys(PEERS),
  titles: { node: 'plain node', hostler: 'Hostler, 1 worker', hostler2: 'Hostler, 2 workers' },
  settings: { rounds: 5 },
  quick: { rounds: 2 },

  lasts: ({ rounds }, peers) => rounds * peers.length * 3.5,

  async prepare(peers) {
    await buildApp();
    if (peers.some((name) => name.startsWith('hostler'))) await buildHostler();
  },

  async run(session, { peers, rounds }) {
    const progress = createProgress({ steps: rounds * peers.length, plannedSeconds: idle.lasts({ rounds }, peers) });
    progress.begin('idle');
    const rows = await inRounds({ rounds, peers, progress, told }, ({ peer }) => measure(session, PEERS[peer]));
    return { settings: { rounds, app: app.name }, rows };
  },
};

/** The time from the start of the process to the first 200, then after some idle time the memory of that process alone, and of all processes that Hostler adds. */
async function measure(session, launchPeer) {
  const began = performance.now();
  const { port, processes } = await launchPeer(session);
  await untilAnswers(port, { path: app.short, processes, every: ASK_EVERY_MS });
  const first_answer_ms = performance.now() - began;
  for (let i = 0; i < 20; i += 1) await get(port, app.short);
  await delay(SETTLE_MS);
  const resident_bytes = residentBytes(processes[0].pid);
  const added = addedBy(processes[0].pid);
  const own = added.length > 0 ? { own_bytes: proportionalBytes(added) } : {};
  for (const one of processes) await session.stop(one);
  return { first_answer_ms, resident_bytes, ...own };
}

/** Hostler and its guard: all that is not the app, which runs without Hostler, too. */
function addedBy(pid) {
  const node = realpathSync(process.execPath);
  return family(pid).filter((one) => readlinkSync(`/proc/${one}/exe`) !== node);
}

function told([{ peer, first_answer_ms, resident_bytes }]) {
  return `${peer}: first answer after ${first_answer_ms.toFixed(0)} ms, ${(resident_bytes / 1e6).toFixed(1)} MB`;
}
