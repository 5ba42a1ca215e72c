// The app behind each peer of the render scenarios, always with the same number of workers. Knows how peers are started,
// not what is measured.
import { readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { chain } from './chain.mjs';
import { startWithWorkers } from './hostler.mjs';
import { startCluster, startWorkers } from './node.mjs';
import { app } from '../lib/app.mjs';
import { family } from '../lib/procfs.mjs';
import { buildApp, buildHostler, buildLoad, installPackages } from '../lib/tools.mjs';

export const WORKERS = 2;
export const QUEUE_TIMEOUT = '5s'; // Airbnb's, the same for Hostler and HAProxy
/** What an expert of HAProxy sets if a page after a second is worth nothing: its queue is in the order of arrival, so in an overload each page waits about as long as it may. */
const BRIEF_QUEUE = '500ms';
export const MIX = { longShare: 0.1, edges: 32 };
/** How many requests run at once during the warm-up of a peer. */
export const WARM_AT_ONCE = 2 * WORKERS;

const SUPERVISED = { app, workers: WORKERS, concurrency: 1, queueTimeout: QUEUE_TIMEOUT, threads: null };

export const RENDERS = {
  hostler: (session) => startWithWorkers(session, SUPERVISED),
  cluster: (session) => startCluster(session, { app, workers: WORKERS }),
  chain: (session) => startChain(session),
};

async function startChain(session, more = {}) {
  const workers = await startWorkers(session, { app, count: WORKERS });
  const settings = { members: workers.map(({ at }) => at), slots: 1, queueTimeout: QUEUE_TIMEOUT, probe: app.short, threads: null, ...more };
  const proxies = await chain.start(session, settings);
  return { port: proxies.port, processes: [...proxies.processes, ...workers.map(({ started }) => started)] };
}

/** More for the overload. */
export const OVERLOADED_RENDERS = { ...RENDERS, brief: (session) => startChain(session, { queueTimeout: BRIEF_QUEUE }) };

/** More for the tail. `bare`: each worker with a port of its own, and no program that chooses among them. */
export const MORE_RENDERS = {
  fifo: (session) => startWithWorkers(session, { ...SUPERVISED, policy: 'fifo' }),
  short: (session) => startWithWorkers(session, { ...SUPERVISED, order: 'short_first', more: routesByQuery(app.long) }),
  async bare(session) {
    const workers = await startWorkers(session, { app, count: WORKERS, on: 'port' });
    return { ports: workers.map(({ at }) => at), processes: workers.map(({ started }) => started) };
  },
};

/** Two routes to the pool, because Hostler learns costs by route and path, and the pages differ in their query only. */
function routesByQuery(path) {
  const [[name, value]] = new URL(path, 'http://localhost').searchParams;
  const route = (when) => `[[routes]]\nmatch = "*"\n${when}pool = "web"\n`;
  return [route(`when = { query = { ${name} = "${value}" } }\n`), route('')].join('\n');
}

/** Peers that know the client of a request by X-Forwarded-For. */
export const SHARED_RENDERS = {
  fair: (session) => startWithWorkers(session, { ...SUPERVISED, fair: ['client'], trusted: ['127.0.0.1'] }),
  hostler: RENDERS.hostler,
  cluster: RENDERS.cluster,
  limits: (session, limit) => startChain(session, { limit }),
};

export const RENDER_TITLES = {
  hostler: 'Hostler', fifo: 'Hostler, `queue.policy = "fifo"`', short: 'Hostler, `queue.order = "short_first"`', cluster: "Node's cluster", chain: chain.title, brief: `${chain.title}, \`timeout queue ${BRIEF_QUEUE}\``, bare: 'two workers without a proxy, clients dealt at random',
};

/** The process ids of the workers among these processes and their children: Node processes that run the app. */
export function workersOf(processes) {
  const node = realpathSync(process.execPath);
  const pids = processes.flatMap(({ pid }) => family(pid)).filter((pid) => readlinkSync(`/proc/${pid}/exe`) === node && !isPrimary(pid));
  if (pids.length !== WORKERS) throw new Error(`${processes[0].name} has ${pids.length} workers, not ${WORKERS}`);
  return pids;
}

const isPrimary = (pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('cluster-primary.mjs');

export async function prepareRenders(peers) {
  if (['chain', 'brief', 'limits'].some((peer) => peers.includes(peer))) await installPackages(chain.packages);
  await buildLoad();
  await buildApp();
  if (['hostler', 'fifo', 'short', 'fair'].some((peer) => peers.includes(peer))) await buildHostler();
}

export async function stopAll(session, processes) {
  for (const one of processes) await session.stop(one);
}
