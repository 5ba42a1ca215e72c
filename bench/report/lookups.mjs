// The lookups section of RESULTS.md. Knows the rows of results/lookups.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { CPU, PAIRED, number, origin, rounds, spread, table, troubles, verdict } from './format.mjs';

/** The targets: requests per second of CPU time at least this many times the peer's. */
const TARGETS = { nginx: 0.9, fastify: 3 };
const P99_MS = 1;
const LONGEST_MS = 300;
const START_MS = 200;
const MEMORY_MB = 60;
const MB = 1e6;

export function lookupsSection(result) {
  const { settings, cells, rows, titles, peers } = result;
  const inCell = (name, peer) => rows.filter((row) => row.cell === name && (!peer || row.peer === peer));
  const against = (name, other) => pairedRatio(inCell(name), { one: 'hostler', other, value: perCpuSecond });
  const verdicts = cells.map(({ name, path, addresses }) => [
    cellName({ path, addresses }),
    ...Object.entries(TARGETS).flatMap(([other, target]) => {
      const ratio = against(name, other);
      return [spread(ratio, 2), verdict(ratio, ({ median: middle }) => middle >= target)];
    }),
    spread(against(name, 'node'), 2),
  ]);
  const targets = [...costTargets({ cells, titles, against }), ...waitTargets(inCell), ...startTargets(inCell('start', 'hostler'))];
  const figures = peers.map((peer) => [
    titles[peer],
    ...cells.map(({ name }) => {
      const own = inCell(name, peer);
      return `${number(median(own.map(perCpuSecond)), 0)}; ${number(median(own.map(rate)), 0)}/s`;
    }),
  ]);
  const text = `## Lookups

${origin(result, ['hostler', 'nginx', 'node', 'fastify', 'maxmind', 'wrk', 'ab'])}

Requests in a second of CPU time, Hostler's divided by the peer's:

${table(['', '/ nginx return 200', `>= ${TARGETS.nginx}`, '/ Fastify', `>= ${TARGETS.fastify}`, '/ plain Node'], verdicts)}

Requests in a second of CPU time, and requests per second, medians:

${table(['one thread', ...cells.map(cellName)], figures)}

Waits for \`${cells[0].path}\`. p99 is from the planned start of a request:

${table(['p99', 'at a quarter of the load', 'at half load', `< ${P99_MS} ms`, 'at three quarters', 'half load', `ab -c ${settings.ab.connections}: p50; p99`, 'longest', `< ${LONGEST_MS} ms`], peers.map((peer) => waiting(peer, { inCell, titles })))}

How late the generator was at half load, and how much CPU it and the service did not get:

${table(['', 'p99', 'start too late by: p50; p99', 'intervals with a stall', 'longest stall', 'p99 of the other intervals', 'taken by the host', 'wait for its core', 'p99 with priority'], [...peers, 'floor'].map((peer) => punctuality(peer, { inCell, titles })))}

${startTable(inCell('start', 'hostler'))}

${headersTable(inCell('proxied'), titles)}

${troubles(rows, titles, ({ cell }) => cell)}

How it is measured:

* One thread of the peer runs on core 0. wrk runs on core 1 with one thread, ${settings.connections} connections and the request fields of a browser.
* All peers send the same body. Each run checks it.
* nginx sends a fixed text with the fields of Hostler's response (\`return 200\`, \`add_header\`). It sends the same text to every address.
* Fastify and plain Node find a finished text in a Map. For cities they use npm maxmind, with a cache for as many addresses as are requested. A trusted proxy's X-Forwarded-For
  names the address, for all peers.
${CPU}
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and cell, after ${settings.warmup} s of warm-up.
${PAIRED}

The waits:

* Half load is half of what the peer has just answered to wrk. The load is an open loop of ${settings.paced ?? settings.half} s: \`bench-pace\` with Poisson arrivals (fixed seed) and ${settings.connections} connections.
  A request without a response counts as one that never came.
* \`bench-pace\` uses a whole core${realTime(rows)}. It leaves the core for 80 µs in each millisecond. Otherwise Linux would take the core for 50 ms of each second.
* The core of the generator has stalled if two readings of the clock with one system call between them are more than 1 ms apart. Then another process used the core, or the
  host of the virtual machine took it.
* Such stalls are in p99, and the target is for this p99. Beside it is the p99 of those intervals of 100 ms that have no stall.
* "Wait for its core" is the time in which the service was ready to run and another process had its core, over all rounds. The service has no priority.
* The last column is from more runs at the same rate, in which the service has priority over all other processes of the machine.
* "${titles.floor ?? 'A fixed response'}" is the upstream of the benchmark at Hostler's rate. It shows the share of the machine and of the generator.
* ab sends ${number(settings.ab.requests, 0)} requests, each on its own connection. The test of the original service was 2,000 requests, with a target of at most 300 ms for the longest.
  It published 2,718 requests/s, p50 103 ms and p99 316 ms, on another machine.

\`geo_headers\`: Hostler runs on core 0. wrk and the members of \`proxy\` run on core 1. In both cases a trusted proxy's X-Forwarded-For names the clients. Each run first checks
whether members get the headers.
`;
  return { text, targets };
}

const perCpuSecond = ({ cpu_ns, requests }) => requests / (cpu_ns / 1e9);
const rate = ({ requests, seconds }) => requests / seconds;
const cellName = ({ path, addresses }) => `\`${path}\`${addresses > 1 ? `, ${number(addresses, 0)} addresses` : ''}`;

/** In milliseconds. Infinity: a response never came. Null: nothing was measured. */
function milliseconds(rows, field) {
  const values = rows.filter((row) => field in row).map((row) => (row[field] === null ? Infinity : row[field] / 1000));
  return values.length > 0 ? summary(values) : null;
}

const written = (value, digits, unit = 'ms') => (value ? `${spread(value, digits)} ${unit}` : 'not measured');

function costTargets({ cells, titles, against }) {
  return cells.flatMap((cell) => Object.entries(TARGETS).map(([other, least]) => {
    const ratio = against(cell.name, other);
    return [`${cellName(cell)}: requests in a CPU second / ${titles[other] ?? other}`, spread(ratio, 2), `>= ${least}`, verdict(ratio, ({ median: middle }) => middle >= least)];
  }));
}

const longestOf = (runs) => (runs.length > 0 ? summary(runs.map(({ longest_ms: ms, failed }) => (failed > 0 ? Infinity : ms))) : null);
const isShort = ({ median: middle }) => middle < P99_MS;
const isNeverLong = ({ max }) => max < LONGEST_MS;

function waitTargets(inCell) {
  const [half, longest] = [milliseconds(inCell('half', 'hostler'), 'p99_us'), longestOf(inCell('ab', 'hostler'))];
  return [
    ['p99 at half load', written(half, 2), `< ${P99_MS} ms`, verdict(half, isShort)],
    ['longest response to ab', written(longest, 0), `< ${LONGEST_MS} ms`, verdict(longest, isNeverLong)],
  ];
}

function waiting(peer, { inCell, titles }) {
  const judged = (value, holds) => (peer === 'hostler' ? verdict(value, holds) : '–');
  const p99 = (cell) => milliseconds(inCell(cell, peer), 'p99_us');
  const runs = inCell('ab', peer);
  const longest = longestOf(runs);
  return [
    titles[peer], written(p99('quarter'), 2), written(p99('half'), 2), judged(p99('half'), isShort), written(p99('three quarters'), 2),
    `${number(median(inCell('half', peer).map((row) => row.rate)), 0)}/s`,
    `${number(median(runs.map(({ p50_ms: ms }) => ms)), 0)}; ${number(median(runs.map(({ p99_ms: ms }) => ms)), 0)} ms`,
    written(longest, 0), judged(longest, isNeverLong),
  ];
}

/** Results of a generator without records about itself have no such figures. */
function punctuality(peer, { inCell, titles }) {
  const all = inCell('half', peer);
  const half = all.filter(({ intervals }) => intervals > 0);
  if (half.length === 0) return [titles[peer] ?? peer, written(milliseconds(all, 'p99_us'), 2), ...Array.from({ length: 7 }, () => 'not measured')];
  const sum = (field) => half.reduce((total, row) => total + row[field], 0);
  const late = ['lag_p50_us', 'lag_p99_us'].map((field) => number(median(half.map((row) => row[field]))));
  return [
    titles[peer], written(milliseconds(half, 'p99_us'), 2), `${late[0]}; ${late[1]} µs`, `${sum('stalled_intervals')} of ${number(sum('intervals'), 0)}`,
    `${number(Math.max(...half.map((row) => row.longest_stall_us)) / 1000)} ms`, written(milliseconds(half, 'calm_p99_us'), 2), `${number(sum('stolen_ms'), 0)} ms`, `${number(sum('cpu_waited_ns') / 1e6, 0)} ms`,
    written(milliseconds(inCell('undisturbed', peer), 'p99_us'), 2),
  ];
}

/** Whether the generator always had its core when it wanted it. */
function realTime(rows) {
  const asked = rows.filter((row) => 'real_time' in row);
  if (asked.length === 0) return '';
  return asked.every((row) => row.real_time) ? ', with real-time priority' : ', **without real-time priority, which was not permitted**';
}

/** The cost of location headers for members. */
function headersTable(rows, titles) {
  const cpu = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
  const of = (name) => rows.filter(({ peer }) => peer === name);
  const figures = (name) => (of(name).length > 0 ? `${number(median(of(name).map(cpu)))} µs; ${number(median(of(name).map(rate)), 0)}/s` : 'not measured');
  const ratio = pairedRatio(rows, { one: 'told', other: 'plain', value: cpu });
  const line = (name, of) => [titles[name] ?? { plain: 'without geo_headers', told: 'with geo_headers' }[name], figures(name), of];
  return table(['Hostler in front of four members, 20,000 clients', 'CPU; requests', 'CPU / CPU without'], [line('plain', '1'), line('told', spread(ratio, 2))]);
}

function startTargets(own) {
  const of = (value) => (own.length > 0 ? summary(own.map(value)) : null);
  const start = of(({ first_answer_ms: ms }) => ms);
  const idle = of(({ idle: { resident } }) => resident / MB);
  return [
    ['start of the process to the first response', written(start, 0), `< ${START_MS} ms`, verdict(start, ({ median: middle }) => middle < START_MS)],
    ['resident memory, idle', written(idle, 1, 'MB'), `< ${MEMORY_MB} MB`, verdict(idle, ({ median: middle }) => middle < MEMORY_MB)],
  ];
}

function startTable(own) {
  const of = (value) => (own.length > 0 ? summary(own.map(value)) : null);
  const [asked, files] = [of((row) => row.asked.resident / MB), of((row) => row.asked.files / MB)];
  return table(['Hostler with 41,488 US codes and DB-IP’s city data', 'measured', 'target', ''], [
    ...startTargets(own),
    ['the same after lookups of 20,000 addresses', written(asked, 1, 'MB'), '–', '–'],
    ['... of it pages of mapped files, which the kernel can free', written(files, 1, 'MB'), '–', '–'],
  ]);
}
