// Cache: the cost of a hit for one cache thread, the hit rate if not everything fits, and the cost of a burst of equal
// misses for the app.
import { fileURLToPath } from 'node:url';
import { bursts } from '../lib/burst.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { cpuDuring, family, filesBytes, proportionalBytes } from '../lib/procfs.mjs';
import { createProgress, errorsTold } from '../lib/progress.mjs';
import { inRounds, inTurn, titlesOf } from '../lib/rounds.mjs';
import { buildBurst, buildHostler, installPackages, needTwoCores } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';
import { zipf } from '../lib/zipf.mjs';
import { CACHES } from '../peers/caches.mjs';
import { stopAll } from '../peers/renders.mjs';

const ORIGIN = fileURLToPath(new URL('../apps/cache/origin.mjs', import.meta.url));
const CACHE_CORE = 0;
const LOAD_CORE = 1;
const CONNECTIONS = 64;
const KEYS = 100_000;
const EXPONENT = 0.9;
const SETTLE = 400_000;
/** More requests than any run sends, so the order never repeats. */
const DRAWS = 1_400_000;
const SIZE = 2_000;

/** `fill`: the number of requests before the measurement. */
const CELLS = [
  { name: '1 kB', path: '/page/1000/one', size: 1_000, megabytes: 1024 },
  { name: '100 kB', path: '/page/100000/one', size: 100_000, megabytes: 1024 },
  { name: 'many', keys: KEYS, size: SIZE, megabytes: 1024, fill: KEYS + 2 * CONNECTIONS },
  { name: 'tight', keys: KEYS, size: SIZE, megabytes: 64, fill: SETTLE },
];
const BURST = { count: 500, size: 10_000, megabytes: 1024 };

export const cache = {
  name: 'cache',
  peers: Object.keys(CACHES),
  titles: titlesOf(CACHES),
  settings: { rounds: 2, seconds: 3, warmup: 1, turns: 5, share: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1, turns: 2, share: 0.05 },

  lasts: ({ rounds, seconds, warmup, turns, share }, peers) => rounds * peers.length * (CELLS.length * (seconds + warmup + 2) + 40 * share + turns),

  async prepare(peers) {
    needTwoCores('cache', 'the cache');
    await installPackages(['wrk', ...peers.flatMap((name) => CACHES[name].packages)]);
    await buildBurst();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup, turns, share }) {
    const steps = rounds * (CELLS.length * peers.length + 1);
    const plannedSeconds = cache.lasts({ rounds, seconds, warmup, turns, share }, peers);
    const progress = createProgress({ steps, plannedSeconds });
    progress.begin('cache');
    const files = writeRequests(session);
    const ending = ({ round }) => burst(session, { peers: inTurn(peers, round - 1), turns });
    const rows = await inRounds({ rounds, cells: CELLS, peers, progress, told, ending }, (turn) => measure(session, { ...turn, files, seconds, warmup, share }));
    const cells = CELLS.map(({ name, megabytes }) => ({ name, megabytes }));
    return { settings: { rounds, seconds, warmup, turns, connections: CONNECTIONS, keys: KEYS, exponent: EXPONENT, size: SIZE, burst: BURST.count }, cells, rows };
  },
};

/** Writes all pages, and the order of the requests. */
function writeRequests(session) {
  const pages = Array.from({ length: KEYS }, (_, i) => `/page/${SIZE}/${i}`);
  const order = zipf({ keys: KEYS, exponent: EXPONENT, count: DRAWS, seed: 1 }).map((i) => i + 1);
  return { requests: session.write('requests', `${pages.join('\n')}\n`), order: session.write('order', `${order.join('\n')}\n`) };
}

async function startOrigin(session) {
  const at = session.path('origin.sock');
  const started = session.start(process.execPath, [ORIGIN], { cpu: LOAD_CORE, env: { PORT: at }, name: 'origin' });
  await untilAnswers(at, { path: '/count', processes: [started] });
  return { at, started, count: async () => Number((await get(at, '/count')).body) };
}

async function measure(session, { cell, peer, files, seconds, warmup, share }) {
  const origin = await startOrigin(session);
  const probe = cell.path ?? `/page/${SIZE}/0`;
  const wanted = await get(origin.at, probe);
  const running = await CACHES[peer].start(session, { origin: origin.at, cpu: CACHE_CORE, megabytes: cell.megabytes, size: cell.size });
  const answer = await untilAnswers(running.port, { path: probe, processes: running.processes });
  if (answer.body !== wanted.body) throw new Error(`${peer} changed the answer`);

  const readings = [memory(running)];

  const to = { port: running.port, path: probe, connections: CONNECTIONS, cpu: LOAD_CORE };
  const filled = cell.keys ? await fill(session, { ...to, cell, files, share }) : 0;
  const many = (from) => (cell.keys ? { many: { ...files, from } } : {});
  const { requests: warmed } = await wrk(session, { ...to, ...many(filled), seconds: warmup });
  if (cell.keys) readings.push(memory(running));
  const before = await origin.count();
  const figures = await cpuDuring(running.processes, () => wrk(session, { ...to, ...many(filled + warmed), seconds }));
  const misses = (await origin.count()) - before;
  readings.push(memory(running));
  await stopAll(session, [...running.processes, origin.started]);
  const most = readings.reduce((one, other) => (other.processes + other.files > one.processes + one.files ? other : one));
  return { cell: cell.name, ...figures, misses, memory: { empty: readings[0], most } };
}

/** The memory of a cache in bytes, measured from outside: its processes, and the files in which it stores pages. */
function memory({ processes, pages }) {
  const pids = processes.flatMap((one) => family(one.pid));
  return { processes: proportionalBytes(pids), files: pages ? filesBytes(pages, pids) : 0 };
}

/**
 * If all pages fit: every page once. If not: requests in the order of the web, until the stored pages have settled. Returns the
 * next position in the order.
 */
async function fill(session, { cell, files, share, ...to }) {
  const [requests, order] = [files.requests, cell.name === 'tight' ? files.order : undefined];
  let done = 0;
  while (done < cell.fill * share) {
    done += (await wrk(session, { ...to, seconds: 2, many: { requests, order, from: done } })).requests;
  }
  return order ? done : 0;
}

/** All peers at once. Each has its own origin, which counts its renders. */
async function burst(session, { peers, turns }) {
  const running = [];
  for (const peer of peers) {
    const origin = await startOrigin(session);
    const one = await CACHES[peer].start(session, { origin: origin.at, megabytes: BURST.megabytes, size: BURST.size });
    await untilAnswers(one.port, { path: '/page/1000/one', processes: one.processes });
    running.push({ peer, origin, ...one });
  }
  const before = await Promise.all(running.map(({ origin }) => origin.count()));
  const targets = Object.fromEntries(running.map(({ peer, port }) => [peer, `http://127.0.0.1:${port}/slow/${BURST.size}/%t`]));
  // The clients are new: the first burst opens their connections.
  const sent = await bursts(session, { targets, count: BURST.count, turns: 1 + turns, first: 1 });
  const after = await Promise.all(running.map(({ origin }) => origin.count()));
  await stopAll(session, running.flatMap(({ origin, processes }) => [...processes, origin.started]));
  return running.map(({ peer }, i) => ({
    cell: 'burst',
    peer,
    renders: after[i] - before[i],
    bursts: sent.filter((row) => row.peer === peer).map(({ turn, took_us, ends }) => ({ turn, took_us, ends })),
  }));
}

function told(rows) {
  const [{ cell, peer, requests, seconds, cpu_ns, misses, errors }] = rows;
  if (cell === 'burst') return `burst: ${rows.map((row) => `${row.peer} ${row.renders} renders in ${row.bursts.length} bursts`).join(', ')}`;
  return `${cell}  ${peer}: ${(cpu_ns / requests / 1000).toFixed(2)} us CPU/request, ${Math.round(requests / seconds)} requests/s, `
    + `${(100 * (1 - misses / requests)).toFixed(1)} % hits${errorsTold(errors)}`;
}
