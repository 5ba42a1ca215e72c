// The app behind each peer of the render scenarios, always with the same number of workers. Knows how peers are started,
// not what is measured.
import { chain } from './chain.mjs';
import { startWithWorkers } from './hostler.mjs';
import { startCluster, startWorkers } from './node.mjs';
import { app } from '../lib/app.mjs';
import { buildApp, buildHostler, buildLoad, installPackages } from '../lib/tools.mjs';

export const WORKERS = 2;
export const QUEUE_TIMEOUT = '5s'; // Airbnb's, the same for Hostler and HAProxy
export const MIX = { longShare: 0.1, edges: 32 };
/** How many requests run at once during the warm-up of a peer. */
export const WARM_AT_ONCE = 2 * WORKERS;

export const RENDERS = {
  hostler: (session) => startWithWorkers(session, { app, workers: WORKERS, concurrency: 1, queueTimeout: QUEUE_TIMEOUT }),
  cluster: (session) => startCluster(session, { app, workers: WORKERS }),
  async chain(session) {
    const workers = await startWorkers(session, { app, count: WORKERS });
    const settings = { members: workers.map(({ at }) => at), slots: 1, queueTimeout: QUEUE_TIMEOUT, probe: app.short };
    const proxies = await chain.start(session, settings);
    return { port: proxies.port, processes: [...proxies.processes, ...workers.map(({ started }) => started)] };
  },
};

export const RENDER_TITLES = { hostler: 'Hostler', cluster: "Node's cluster", chain: chain.title };

export async function prepareRenders(peers) {
  if (peers.includes('chain')) await installPackages(chain.packages);
  await buildLoad();
  await buildApp();
  if (peers.includes('hostler')) await buildHostler();
}

export async function stopAll(session, processes) {
  for (const one of processes) await session.stop(one);
}
