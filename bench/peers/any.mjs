// One app (apps/any) behind each peer of the any-app scenario, always with two workers. Knows how peers are started without
// a request, not what is measured.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { launchCluster } from './node.mjs';
import { launchPm2 } from './pm2.mjs';
import { freePort, tail } from '../lib/session.mjs';
import { hostlerBinary } from '../lib/tools.mjs';

export const WORKERS = 2;
const app = { name: 'bench/apps/any', dir: fileURLToPath(new URL('../apps/any', import.meta.url)), args: ['server.cjs'] };
const LONGEST_START_MS = 30_000;
/** From the app's own line to a peer that sends it requests. The same for all peers. */
const SETTLING_MS = 500;
/** The app prints `up` when it listens. Hostler passes the line on with the time and the worker's name. */
const LISTENS = /(?:^|\| )up$/gm;

export const ANY_PEERS = {
  auto: (session) => launchHostler(session, []),
  fixed: (session, { concurrency }) => launchHostler(session, ['--concurrency', String(concurrency)]),
  cluster: (session) => launchCluster(session, { app, workers: WORKERS }),
  pm2: async (session) => {
    const { port, processes } = await launchPm2(session, { app, workers: WORKERS });
    return { port, processes: processes(), isUp: /^.* App \[\S+\] online$/gm }; // PM2 says so when the app has said `ready`
  },
};

export const ANY_TITLES = { auto: 'Hostler, nothing set', fixed: 'Hostler, best fixed number', cluster: "Node's cluster", pm2: 'PM2' };

/** Starts the peer and waits until both workers listen, as the log says. No request is sent, so that the first one is the measurement's. */
export async function startAny(session, peer, settings) {
  const running = await ANY_PEERS[peer](session, settings);
  const [first] = running.processes;
  const workersUp = () => readFileSync(first.log, 'utf8').match(running.isUp ?? LISTENS)?.length ?? 0;
  const deadline = performance.now() + LONGEST_START_MS;
  while (workersUp() < WORKERS) {
    if (first.ended !== null) throw new Error(`${first.name} ended with ${first.ended}\n${tail(first)}`);
    if (performance.now() > deadline) throw new Error(`${first.name}: ${workersUp()} of ${WORKERS} workers listen\n${tail(first)}`);
    await delay(20);
  }
  await delay(SETTLING_MS);
  return running;
}

/** As an operator types it. Only the access log is off, because no peer has one. */
async function launchHostler(session, settings) {
  const port = await freePort();
  const args = ['run', '--listen', `127.0.0.1:${port}`, '--admin', 'off', '--log', 'off', '--workers', String(WORKERS), ...settings, '--', 'node', ...app.args];
  const started = session.start(hostlerBinary(), args, { cwd: app.dir, env: { NODE_ENV: 'production' }, name: 'hostler' });
  return { port, processes: [started] };
}
