// Many apps: 50 small apps in one Hostler, each on its own host and without a process until its first request. Their memory
// awake and asleep, and the time to wake one, beside the boot of the same app without Hostler.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { get, untilAnswers } from '../lib/http.mjs';
import { family, proportionalBytes } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { eachRound } from '../lib/rounds.mjs';
import { freePort, tail } from '../lib/session.mjs';
import { buildHostler, hostlerBinary } from '../lib/tools.mjs';

const APP = { name: 'bench/apps/any', dir: fileURLToPath(new URL('../apps/any', import.meta.url)), args: ['server.cjs'] };
const SETTLE_MS = 1000;
/** While all apps are woken, none falls asleep; then all do. */
const [KEEP_AWAKE, SLEEP_AFTER] = ['1h', '2s'];
const LONGEST_MS = 60_000;
const OWN_PROCESSES = 2; // Hostler and its guard

export const manyApps = {
  name: 'many-apps',
  peers: ['node', 'hostler'],
  titles: { node: 'plain node', hostler: 'Hostler' },
  settings: { rounds: 3, apps: 50 },
  quick: { rounds: 1, apps: 50 },

  lasts: ({ rounds, apps }) => rounds * (10 + apps * 0.4),

  async prepare(peers) {
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, apps }) {
    const progress = createProgress({ steps: rounds * 3, plannedSeconds: manyApps.lasts({ rounds, apps }) });
    progress.begin('many-apps');
    const rows = await eachRound({ rounds, progress, told }, ({ round, step }) => oneRound(session, { round, peers, apps, step }));
    return { settings: { rounds, apps, app: APP.name, sleep_after: SLEEP_AFTER }, rows };
  },
};

async function oneRound(session, { round, peers, apps, step }) {
  const hostler = peers.includes('hostler') ? await start(session, apps) : null;
  if (hostler) await step({ peer: 'hostler', state: 'started' }, () => memory(hostler));
  await step({ state: 'woken' }, async () => {
    const rows = [];
    for (let app = 0; app < apps; app += 1) {
      // In turns: the first of the two finds the files of Node in the caches that the other has filled.
      const turns = [['node', () => boot(session)], ['hostler', () => wake(hostler, app)]].filter(([peer]) => peers.includes(peer));
      for (const [peer, measure] of (app + round) % 2 === 0 ? turns : turns.reverse()) rows.push({ peer, app, first_answer_ms: await measure() });
    }
    return rows;
  });
  if (!hostler) return;
  await step({ peer: 'hostler', state: 'awake' }, async () => {
    await delay(SETTLE_MS);
    const awake = memory(hostler);
    if (awake.processes !== OWN_PROCESSES + apps) throw new Error(`${awake.processes} processes instead of ${OWN_PROCESSES + apps}\n${tail(hostler.processes[0])}`);
    const asleep_after_ms = await sleep(session, hostler);
    return [{ ...awake }, { state: 'asleep', asleep_after_ms, ...memory(hostler) }];
  });
  await session.stop(hostler.processes[0]);
}

async function start(session, apps) {
  const [port, admin] = [await freePort(), `127.0.0.1:${await freePort()}`];
  const about = (shrinkAfter) => configuration({ port, admin, apps, shrinkAfter });
  const file = session.write('hostler.toml', about(KEEP_AWAKE));
  const processes = [session.start(hostlerBinary(), ['start', '-c', file], { name: 'hostler' })];
  const hostler = { port, admin, file, processes, about };
  await untilAnswers(port, { path: '/here', processes });
  return hostler;
}

function configuration({ port, admin, apps, shrinkAfter }) {
  const pools = Array.from({ length: apps }, (_, app) => `
[pools.app-${app}]
command = ["node", "server.cjs"]
cwd = ${JSON.stringify(APP.dir)}
workers = { min = 0, max = 4 }
shrink_after = "${shrinkAfter}"
[[routes]]
match = "${host(app)}/*"
pool = "app-${app}"
`);
  return `[server]
listen = "127.0.0.1:${port}"
admin = "${admin}"
access_log = "off"
[[routes]]
match = "/here"
respond = { status = 200 }
${pools.join('')}`;
}

const host = (app) => `app-${app}.bench.test`;

/**
 * From the start of the process to its first response, on a Unix socket, which Hostler's workers have, too. The app prints a
 * line when it listens, so no request comes too early.
 */
async function boot(session) {
  const socket = session.path('app.sock');
  const began = performance.now();
  const started = session.start('node', APP.args, { cwd: APP.dir, env: { PORT: socket }, name: 'node', stdout: 'pipe' });
  await new Promise((resolve, reject) => {
    started.child.stdout.once('data', resolve);
    started.exit.then((how) => reject(new Error(`the app ended with ${how}\n${tail(started)}`)));
  });
  await answered(socket, 'localhost');
  const took = performance.now() - began;
  await session.stop(started);
  return took;
}

/** From a request to its answer, while the app is asleep. */
async function wake({ port }, app) {
  const began = performance.now();
  await answered(port, host(app));
  return performance.now() - began;
}

async function answered(at, to) {
  const { status, body } = await get(at, '/', { headers: { host: to }, timeout: LONGEST_MS });
  if (status !== 200) throw new Error(`${to}: ${status} ${body}`);
}

/** Hostler, its guard and all workers. Pages that processes share count once. */
function memory({ processes: [{ pid }] }) {
  const pids = family(pid);
  return { processes: pids.length, bytes: proportionalBytes(pids), own_bytes: proportionalBytes([pid]) };
}

/** Lets the apps fall asleep, and returns when no process of theirs is left. */
async function sleep(session, { about, file, admin, processes: [hostler] }) {
  writeFileSync(file, about(SLEEP_AFTER));
  await session.run(hostlerBinary(), ['reload', '--admin', admin], { name: 'hostler-reload' });
  const began = performance.now();
  while (family(hostler.pid).length > OWN_PROCESSES) {
    if (performance.now() - began > LONGEST_MS) throw new Error(`apps do not fall asleep\n${tail(hostler)}`);
    await delay(50);
  }
  return performance.now() - began;
}

function told(rows) {
  const mb = ({ state, processes, bytes }) => `${state}: ${processes} processes, ${(bytes / 1e6).toFixed(0)} MB`;
  const sum = (peer) => rows.filter((row) => row.peer === peer).map((row) => row.first_answer_ms);
  const mean = (all) => (all.length > 0 ? `${(all.reduce((a, b) => a + b, 0) / all.length).toFixed(0)} ms` : 'not measured');
  return rows[0].state === 'woken' ? `woken: Hostler ${mean(sum('hostler'))}, plain node ${mean(sum('node'))}` : rows.map(mb).join('; ');
}
