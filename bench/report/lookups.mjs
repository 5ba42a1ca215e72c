// The lookups section of RESULTS.md. Knows the rows of results/lookups.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, troubles, verdict } from './format.mjs';

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
  const figures = peers.map((peer) => [
    titles[peer],
    ...cells.map(({ name }) => {
      const own = inCell(name, peer);
      return `${number(median(own.map(perCpuSecond)), 0)}; ${number(median(own.map(rate)), 0)}/s`;
    }),
  ]);
  return `## Lookups

${origin(result, ['hostler', 'nginx', 'node', 'fastify', 'maxmind', 'wrk', 'ab'])}

Requests in a second of CPU time, Hostler's divided by the peer's:

${table(['', '/ nginx return 200', `>= ${TARGETS.nginx}`, '/ Fastify', `>= ${TARGETS.fastify}`, '/ plain Node'], verdicts)}

Requests in a second of CPU time, and requests per second, medians:

${table(['one thread', ...cells.map(cellName)], figures)}

How long people wait for \`${cells[0].path}\`; p99 counts from the instant at which a request was meant to start:

${table(['p99', 'at a quarter of the load', 'at half load', `< ${P99_MS} ms`, 'at three quarters', 'half is', `ab -c ${settings.ab.connections}: p50; p99`, 'longest', `< ${LONGEST_MS} ms`], peers.map((peer) => waiting(peer, { inCell, titles })))}

How punctual the generator was at half load, and what the machine took from it:

${table(['', 'p99', 'late by: p50; p99', 'intervals in which its core stalled', 'the longest stall', 'p99 of the other intervals', 'taken by the host', 'others had the service’s core', 'p99 if they may not'], [...peers, 'floor'].map((peer) => punctuality(peer, { inCell, titles })))}

${startTable(inCell('start', 'hostler'))}

${headersTable(inCell('proxied'), titles)}

${troubles(rows, titles, ({ cell }) => cell)}

How: one thread on core 0; wrk with one thread, ${settings.connections} connections and a browser's request fields on core 1. All answer the same body, which each run checks;
nginx says it as a fixed text with the fields of Hostler's answer (\`return 200\`, \`add_header\`), to every address the same. Fastify and plain Node find a finished
text in a Map, and cities with npm maxmind and a cache of as many addresses as are asked for; a trusted proxy's X-Forwarded-For says the address to all. CPU is the scheduler's run
time of all the peer's processes. ${rounds(settings.rounds)} of ${settings.seconds} s per peer and cell after ${settings.warmup} s of warm-up, peers in turns within each round; a ratio is the median
of same-round pairs, with the smallest and the largest in parentheses. Half load is half of what the peer has just done with wrk, in an open loop of ${settings.paced ?? settings.half} s (\`bench-pace\`, Poisson
arrivals from a seed, ${settings.connections} connections; a request that was not answered counts as one that never was). It spins on a core of its own${realTime(rows)}, which it
leaves for 80 µs in each millisecond, or Linux would take it for 50 ms of each second. Its core stalled
where two readings of the clock, with one call to the kernel between them, are more than 1 ms apart: others of this machine ran there, or its host took it away. Such stalls are in p99, by which
the service is judged; beside it stands p99 of the intervals of 100 ms that no stall touched. When the service had to wait for its own core is in both, and in the last column but one, over all rounds: it has no priority. The last column is of further runs at the same rate in which it has: all else on this machine
comes after it, as where there is a core for all else. "${titles.floor ?? 'A fixed answer'}" is
the bench's own upstream at Hostler's rate: what the machine and the generator alone come to. \`geo_headers\`: Hostler on core 0, wrk and the
members of \`proxy\` on core 1; a trusted proxy's X-Forwarded-For names the clients both times, and each run begins by seeing that members are told, or not. ab sends ${number(settings.ab.requests, 0)} requests, each on a connection of its own; the original's own test was 2,000 of them, with a
longest of 300 ms wanted. (It published 2,718 requests/s, p50 103 ms and p99 316 ms for that, on another machine.)
`;
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

function waiting(peer, { inCell, titles }) {
  const judged = (value, holds) => (peer === 'hostler' ? verdict(value, holds) : '–');
  const p99 = (cell) => milliseconds(inCell(cell, peer), 'p99_us');
  const runs = inCell('ab', peer);
  const longest = runs.length > 0 ? summary(runs.map(({ longest_ms: ms, failed }) => (failed > 0 ? Infinity : ms))) : null;
  return [
    titles[peer], written(p99('quarter'), 2), written(p99('half'), 2), judged(p99('half'), ({ median: middle }) => middle < P99_MS), written(p99('three quarters'), 2),
    `${number(median(inCell('half', peer).map((row) => row.rate)), 0)}/s`,
    `${number(median(runs.map(({ p50_ms: ms }) => ms)), 0)}; ${number(median(runs.map(({ p99_ms: ms }) => ms)), 0)} ms`,
    written(longest, 0), judged(longest, ({ max }) => max < LONGEST_MS),
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
  return table(['Hostler in front of four members, 20,000 clients', 'CPU; requests', 'CPU, of that without'], [line('plain', '1'), line('told', spread(ratio, 2))]);
}

function startTable(own) {
  const of = (value) => (own.length > 0 ? summary(own.map(value)) : null);
  const start = of(({ first_answer_ms: ms }) => ms);
  const idle = of(({ idle: { resident } }) => resident / MB);
  const [asked, files] = [of((row) => row.asked.resident / MB), of((row) => row.asked.files / MB)];
  return table(['Hostler with 41,488 US codes and DB-IP’s city data', 'measured', 'target', ''], [
    ['start of the process to the first answer', written(start, 0), `< ${START_MS} ms`, verdict(start, ({ median: middle }) => middle < START_MS)],
    ['resident memory, idle', written(idle, 1, 'MB'), `< ${MEMORY_MB} MB`, verdict(idle, ({ median: middle }) => middle < MEMORY_MB)],
    ['the same after questions about 20,000 addresses', written(asked, 1, 'MB'), '–', '–'],
    ['... of which pages of mapped files, which the kernel may take back', written(files, 1, 'MB'), '–', '–'],
  ]);
}
