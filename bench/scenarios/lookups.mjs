// Lookups: the cost of a postal code and of the visitor's city for one thread, the waiting times, and the resources for
// the data.
import { setTimeout as delay } from 'node:timers/promises';
import { ab } from '../lib/ab.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { installLookups } from '../lib/lookups.mjs';
import { pace } from '../lib/pace.mjs';
import { withCore } from '../lib/priority.mjs';
import { cpuDuring, residentParts } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds, inTurn, titlesOf } from '../lib/rounds.mjs';
import { buildHostler, buildUpstream, installPackages, needTwoCores } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';
import { mulberry32 } from '../lib/zipf.mjs';
import { GEO, checkTold } from '../peers/geo.mjs';
import { LOOKUPS } from '../peers/lookups.mjs';
import { startMembers } from '../peers/members.mjs';
import { stopAll } from '../peers/renders.mjs';

const PEER_CORE = 0;
const LOAD_CORE = 1;
const CONNECTIONS = 64;
const ZIP = '/api/zipinfo/byzip/97209';
const CITY = '/get_city';
const VISITOR = '128.101.101.101';
const ADDRESSES = 20_000;
const MEMBERS = 4;
const PROXIED = '/rooms/48213';
const SETTLE_MS = 500;
/** The waiting times are measured at these shares of a peer's capacity. */
const SHARES = { quarter: 0.25, half: 0.5, 'three quarters': 0.75 };

/** `from`: the client's address. nginx sends the same to all clients. */
const CELLS = [
  { name: 'byzip', path: ZIP },
  { name: 'get_city', path: CITY, from: [VISITOR] },
  { name: 'get_city, many', path: CITY, from: addresses(ADDRESSES) },
];

export const lookups = {
  name: 'lookups',
  peers: Object.keys(LOOKUPS),
  titles: { ...titlesOf(LOOKUPS), floor: 'a fixed answer, nothing read', ...titlesOf(GEO) },
  // The original test had 2,000 requests, 500 at once.
  settings: { rounds: 2, seconds: 2, warmup: 1, paced: 4, ab: { requests: 20_000, connections: 500 } },
  quick: { rounds: 1, seconds: 1, warmup: 1, paced: 1, ab: { requests: 2_000, connections: 500 } },

  lasts({ rounds, seconds, warmup, paced }, peers) {
    const each = CELLS.length * (seconds + warmup) + (Object.keys(SHARES).length + 1) * paced + 6;
    return rounds * (peers.length * each + 2 * paced + 8 + 2 * (seconds + warmup));
  },

  async prepare(peers) {
    needTwoCores('lookups', 'the service');
    await installPackages(['wrk', 'apache2-utils', ...peers.flatMap((name) => LOOKUPS[name].packages)]);
    await installLookups();
    await buildUpstream();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup, paced, ab: burst }) {
    const progress = createProgress({ steps: rounds * (peers.length + 1), plannedSeconds: lookups.lasts({ rounds, seconds, warmup, paced }, peers) });
    progress.begin('lookups');
    const said = await reference(session, peers);
    const asked = [...CELLS.filter(({ from }) => from), { name: 'proxied', path: PROXIED, from: addresses(ADDRESSES) }];
    const files = Object.fromEntries(asked.map(({ name, path, from }) => [name, session.write('requests', from.map((ip) => `${path} ${ip}\n`).join(''))]));
    if (peers.includes('hostler')) await checkTold(session, VISITOR);
    const ending = async ({ round, found }) => [
      ...(await floor(session, { rate: halfOf(found).rate, seconds: paced })),
      ...(peers.includes('hostler') ? [await started(session, files), ...(await inFront(session, { round, file: files.proxied, seconds, warmup }))] : []),
    ];
    const rows = await inRounds({ rounds, peers, progress, told, ending }, ({ peer }) => measure(session, { peer, said, files, seconds, warmup, paced, burst }));
    const cells = CELLS.map(({ name, path, from }) => ({ name, path, addresses: from?.length ?? 0 }));
    return { settings: { rounds, seconds, warmup, paced, ab: burst, connections: CONNECTIONS }, cells, rows };
  },
};

/** Public addresses from all of IPv4. They are the same each time. */
function addresses(count) {
  const random = mulberry32(1);
  const part = () => Math.floor(random() * 256);
  const list = [];
  while (list.length < count) {
    const first = 1 + Math.floor(random() * 223);
    if (![10, 100, 127, 169, 172, 192, 198, 203].includes(first)) list.push([first, part(), part(), part()].join('.'));
  }
  return list;
}

/** The responses of Hostler, or of plain Node if Hostler does not take part. All peers must send the same, and nginx is configured with them. */
async function reference(session, peers) {
  const peer = peers.includes('hostler') ? 'hostler' : 'node';
  const { port, processes } = await LOOKUPS[peer].start(session, {});
  await untilAnswers(port, { path: ZIP, processes });
  const said = {};
  for (const path of [ZIP, CITY]) said[path] = await ask(port, path);
  await stopAll(session, processes);
  return said;
}

/** Each server sends its own, or they differ each time. */
const OWN = ['date', 'server', 'connection', 'keep-alive', 'content-type', 'content-length', 'x-request-id'];

async function ask(port, path) {
  const { headers, body } = await get(port, path, { headers: { 'x-forwarded-for': VISITOR } });
  return { headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN.includes(name))), body };
}

async function measure(session, { peer, said, files, seconds, warmup, paced, burst }) {
  const { port, processes } = await LOOKUPS[peer].start(session, { said, cpu: PEER_CORE });
  await untilAnswers(port, { path: ZIP, processes });
  for (const path of [ZIP, CITY]) {
    const { body } = await ask(port, path);
    if (body !== said[path].body) throw new Error(`${peer} says ${body}\nand not ${said[path].body}`);
  }
  const rows = [];
  for (const { name, path } of CELLS) {
    const to = { port, path, connections: CONNECTIONS, cpu: LOAD_CORE, ...(files[name] ? { many: { requests: files[name] } } : {}) };
    await wrk(session, { ...to, seconds: warmup });
    rows.push({ cell: name, ...(await cpuDuring(processes, () => wrk(session, { ...to, seconds }))) });
  }
  for (const [cell, share] of Object.entries(SHARES)) {
    const rate = (share * rows[0].requests) / rows[0].seconds;
    const loop = { port, processes, rate, seconds: paced };
    rows.push({ cell, share, ...(await waits(session, loop)) });
    if (cell === 'half') rows.push(...(await undisturbed(session, loop)));
  }
  rows.push({ cell: 'ab', ...(await ab(session, { port, path: ZIP, cpu: LOAD_CORE, ...burst })) });
  await stopAll(session, processes);
  return rows;
}

/** The latencies in an open loop. */
function waits(session, { port, processes, rate, seconds }) {
  const loop = { port, path: ZIP, rate, seconds, connections: CONNECTIONS, seed: 1, cpu: LOAD_CORE };
  return cpuDuring(processes, () => pace(session, loop));
}

/** The same while no other process runs before the service on its core. This machine has no spare core for all the others. */
async function undisturbed(session, loop) {
  const row = await withCore(loop.processes, 10, () => waits(session, loop));
  return row ? [{ cell: 'undisturbed', ...row }] : [];
}

/** Half of the capacity of Hostler, if it takes part. */
function halfOf(rows) {
  const halves = rows.filter(({ cell }) => cell === 'half');
  return halves.find(({ peer }) => peer === 'hostler') ?? halves[0];
}

/** The latency of the machine and the generator alone: a program without work sends a fixed response at the same rate. */
async function floor(session, { rate, seconds }) {
  const { port, started: process } = await startMembers(session, { count: 0, cpu: PEER_CORE, probe: ZIP });
  const loop = { port, processes: [process], rate, seconds };
  const rows = [{ cell: 'half', ...(await waits(session, loop)) }, ...(await undisturbed(session, loop))];
  await session.stop(process);
  return rows.map((row) => ({ ...row, peer: 'floor' }));
}

/** The cost of location headers for members: 20,000 clients that a trusted proxy names, first passed on as they are, then looked up. */
async function inFront(session, { round, file, seconds, warmup }) {
  const { started: behind, members, body } = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROXIED });
  const rows = [];
  for (const peer of inTurn(Object.keys(GEO), round - 1)) {
    const { port, processes } = await GEO[peer].start(session, { members, cpu: PEER_CORE, probe: PROXIED });
    if ((await get(port, PROXIED)).body !== body) throw new Error(`${peer} changed the answer`);
    const to = { port, connections: CONNECTIONS, cpu: LOAD_CORE, many: { requests: file } };
    await wrk(session, { ...to, seconds: warmup });
    rows.push({ cell: 'proxied', peer, ...(await cpuDuring(processes, () => wrk(session, { ...to, seconds }))) });
    await stopAll(session, processes);
  }
  await session.stop(behind);
  return rows;
}

/** The time from the start of the process to its first response from each data set, and its memory then and after many requests. */
async function started(session, files) {
  const began = performance.now();
  const { port, processes } = await LOOKUPS.hostler.start(session, {});
  await untilAnswers(port, { path: ZIP, processes, every: 2 });
  const first_answer_ms = performance.now() - began;
  await untilAnswers(port, { path: CITY, processes, every: 2 });
  await delay(SETTLE_MS);
  const idle = residentParts(processes[0].pid);
  await wrk(session, { port, path: CITY, connections: CONNECTIONS, seconds: 2, cpu: LOAD_CORE, many: { requests: files['get_city, many'] } });
  const asked = residentParts(processes[0].pid);
  await stopAll(session, processes);
  return { cell: 'start', peer: 'hostler', first_answer_ms, idle, asked };
}

function told(rows) {
  const of = (name) => rows.find(({ cell }) => cell === name);
  const cost = rows.filter(({ requests, cpu_ns }) => requests && cpu_ns)
    .map(({ cell, peer, requests, cpu_ns }) => `${cell === 'proxied' ? `${cell} ${GEO[peer].title}` : cell} ${(cpu_ns / requests / 1000).toFixed(2)} us`);
  const { peer, p99_us, rate, intervals, stalled_intervals: stalled } = of('half');
  return [
    `${peer}: p99 ${(p99_us / 1000).toFixed(2)} ms at ${Math.round(rate)}/s (${stalled} of ${intervals} intervals stalled)`,
    ...(cost.length > 0 ? [cost.join(', ')] : []),
    ...(of('ab') ? [`ab: ${of('ab').longest_ms} ms at most`] : []),
    ...(of('start') ? [`start: first answer after ${of('start').first_answer_ms.toFixed(0)} ms, ${(of('start').asked.resident / 1e6).toFixed(1)} MB`] : []),
  ].join('; ');
}
