// Scale: what more members, more routes, more threads and a fair queue with many keys cost a request. Only Hostler takes part: each variant takes turns
// with the plain one.
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { launch } from '../peers/hostler.mjs';
import { startMembers } from '../peers/members.mjs';
import { stopAll } from '../peers/renders.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress, errorsTold } from '../lib/progress.mjs';
import { inRounds, inTurn } from '../lib/rounds.mjs';
import { median } from '../lib/statistics.mjs';
import { buildHostler, buildUpstream, installPackages, needTwoCores } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';
import { LOAD_CORE, PROBE, PROXY_CORE } from './proxy.mjs';

const PLAIN = { members: 4, slots: 64, routes: 10, threads: 1, connections: 50 };
const MOST_MEMBERS = 512;
const MOST_THREADS = 4;

const KEY_FIELD = 'X-Key';
const KEYS = 10_000;
const FAIR = `header:${KEY_FIELD}`;

/** `keys`: each request has the next of so many keys; `fair` makes the queue look at them. `than`: the variant that it is compared with. `anywhere`: on all cores, which threads share with the load. */
const VARIANTS = {
  plain: {},
  members: { members: MOST_MEMBERS, than: 'plain' },
  routes: { routes: 10_000, than: 'plain' },
  // As many slots in all, and more connections than slots: a queue.
  queue: { slots: 128, connections: 600 },
  'queue, members': { members: MOST_MEMBERS, slots: 1, connections: 600, than: 'queue' },
  // No request waits; then the queue stands. Measured side by side: the target is nearer than two runs some seconds apart are to each other.
  keys: { keys: KEYS },
  'keys, fair': { keys: KEYS, fair: FAIR, than: 'keys' },
  'queue of keys': { slots: 1, connections: 200, keys: KEYS },
  'queue of keys, fair': { slots: 1, connections: 200, keys: KEYS, fair: FAIR, than: 'queue of keys' },
  'threads 1': { anywhere: true },
  ...Object.fromEntries(threadCounts().map((threads) => [`threads ${threads}`, { threads, anywhere: true, than: 'threads 1' }])),
};

const ALONE = Object.keys(VARIANTS).filter((name) => !VARIANTS[name].keys);
const PAIRS = Object.keys(VARIANTS).filter((name) => VARIANTS[name].fair).map((name) => [VARIANTS[name].than, name]);
/** So many slices of each side of a pair, each half as long as a run of the others. */
const SLICES = 4;

function threadCounts() {
  const most = Math.min(MOST_THREADS, availableParallelism());
  return Array.from({ length: most - 1 }, (_, i) => i + 2);
}

export const scale = {
  name: 'scale',
  peers: ['hostler'],
  titles: { hostler: 'Hostler' },
  settings: { rounds: 4, seconds: 2, warmup: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1 },

  lasts: ({ rounds, seconds, warmup }) => rounds * (ALONE.length * (seconds + warmup + 0.8) + 2 * PAIRS.length * (SLICES * (seconds / 2 + 0.1) + warmup + 0.8)),

  async prepare() {
    needTwoCores('scale', 'the proxy');
    await installPackages(['wrk']);
    await buildUpstream();
    await buildHostler();
  },

  async run(session, { rounds, seconds, warmup }) {
    const progress = createProgress({ steps: rounds * (ALONE.length + 1), plannedSeconds: scale.lasts({ rounds, seconds, warmup }) });
    progress.begin('scale');
    const upstream = await startMembers(session, { count: MOST_MEMBERS, cpu: LOAD_CORE, probe: PROBE });
    const keyed = { requests: session.write('keys', keyedRequests()), field: KEY_FIELD };
    const lengths = { seconds, warmup };
    const ending = ({ round }) => pairs(session, { round, upstream, keyed, ...lengths });
    const rows = await inRounds({ rounds, peers: ALONE, progress, told, ending }, ({ peer }) => measure(session, { ...PLAIN, ...VARIANTS[peer], upstream, ...lengths }));
    await session.stop(upstream.started);
    return { settings: { rounds, seconds, warmup }, plain: PLAIN, variants: VARIANTS, rows };
  },
};

async function measure(session, { connections, seconds, warmup, ...variant }) {
  const { port, processes } = await begin(session, variant);
  const at = { port, connections, cpu: LOAD_CORE };
  await wrk(session, { ...at, seconds: warmup });
  const figures = await cpuDuring(processes, () => wrk(session, { ...at, seconds }));
  await stopAll(session, processes);
  return figures;
}

async function begin(session, { members, slots, routes, threads, anywhere, fair, upstream }) {
  const own = upstream.members.slice(0, members).map((path) => `unix:${path}`);
  const pool = [`members = ${JSON.stringify(own)}`, `concurrency = ${slots}`];
  const { port, processes } = await launch(session, { pool, queueTimeout: '5s', threads, fair, more: routed(routes) }, { cpu: anywhere ? undefined : PROXY_CORE });
  await untilAnswers(port, { path: PROBE, processes });
  const answer = await get(port, PROBE);
  if (answer.body !== upstream.body) throw new Error(`Hostler changed the answer:\n${answer.body}`);
  return { port, processes };
}

/** Both sides of a pair stand side by side, and short slices take turns: another side is first in each of them. */
async function pairs(session, { round, upstream, keyed, seconds, warmup }) {
  const rows = [];
  for (const pair of PAIRS) {
    const sides = [];
    for (const peer of inTurn(pair, round - 1)) {
      const variant = { ...PLAIN, ...VARIANTS[peer] };
      const side = { peer, connections: variant.connections, ...await begin(session, { ...variant, upstream }), from: 0, slices: [] };
      await load(session, { side, keyed, seconds: warmup });
      sides.push(side);
    }
    for (let turn = 0; turn < SLICES; turn += 1) {
      for (const side of inTurn(sides, turn)) side.slices.push(await cpuDuring(side.processes, () => load(session, { side, keyed, seconds: Math.ceil(seconds / 2) })));
    }
    for (const { peer, processes, slices } of sides) {
      await stopAll(session, processes);
      rows.push({ peer, ...together(slices) });
    }
  }
  return rows;
}

/** Each request has the next key, also across slices. */
async function load(session, { side, keyed, seconds }) {
  const figures = await wrk(session, { port: side.port, connections: side.connections, seconds, cpu: LOAD_CORE, many: { ...keyed, from: side.from } });
  side.from += figures.requests;
  return figures;
}

/** The figures of slices as those of one run. The percentiles are medians. */
function together(slices) {
  const sum = (value) => slices.reduce((total, slice) => total + value(slice), 0);
  const summed = ['requests', 'seconds', 'bytes', 'cpu_ns', 'cpu_ticks_ns', 'cpu_waited_ns'].map((name) => [name, sum((slice) => slice[name])]);
  const errors = Object.keys(slices[0].errors).map((name) => [name, sum((slice) => slice.errors[name])]);
  const middle = (name) => median(slices.map((slice) => slice[name]));
  return { ...Object.fromEntries(summed), p50_us: middle('p50_us'), p99_us: middle('p99_us'), errors: Object.fromEntries(errors) };
}

/** The same page with each key, as wrk-many.lua reads it. A key looks like one of an API: 32 characters. */
function keyedRequests() {
  const keys = Array.from({ length: KEYS }, (_, i) => createHash('sha256').update(String(i)).digest('hex').slice(0, 32));
  return keys.map((key) => `${PROBE} ${key}\n`).join('');
}

/** So many routes: half of them by host, half by path, and the one of the probe. */
function routed(count) {
  const route = (match) => `[[routes]]\nmatch = "${match}"\npool = "web"\n`;
  const others = Array.from({ length: count - 1 }, (_, i) => route(i % 2 === 0 ? `app-${i}.bench.test/*` : `/app-${i}/*`));
  return [...others, route('/rooms/*')].join('\n');
}

function told(rows) {
  return rows.map(described).join('; ');
}

function described({ peer, requests, seconds, cpu_ns, p99_us, errors }) {
  return `${peer}: ${(cpu_ns / requests / 1000).toFixed(2)} us CPU/request, p99 ${(p99_us / 1000).toFixed(1)} ms, ${Math.round(requests / seconds)} requests/s${errorsTold(errors)}`;
}
