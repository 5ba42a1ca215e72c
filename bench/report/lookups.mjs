// The lookups section of RESULTS.md. Knows the rows of results/lookups.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, verdict } from './format.mjs';

/** Requests in a second of CPU time, at least so many times the peer's. */
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

How long people wait for \`${cells[0].path}\`:

${table(['', `p99 at half load`, `< ${P99_MS} ms`, 'from its real start', 'that is', `ab -c ${settings.ab.connections}: p50; p99`, 'longest', `< ${LONGEST_MS} ms`], peers.map((peer) => waiting(peer, { inCell, titles })))}

${startTable(inCell('start', 'hostler'))}

${troubles(rows, titles)}

How: one thread on core 0; wrk with one thread, ${settings.connections} connections and a browser's request fields on core 1. All answer the same body, which each run checks;
nginx says it as a fixed text with the fields of Hostler's answer (\`return 200\`, \`add_header\`), to every address the same. Fastify and plain Node find a finished
text in a Map, and cities with npm maxmind and a cache of as many addresses as are asked for; a trusted proxy's X-Forwarded-For says the address to all. CPU is the scheduler's run
time of all the peer's processes. ${rounds(settings.rounds)} of ${settings.seconds} s per peer and cell after ${settings.warmup} s of warm-up, peers in turns within each round; a ratio is the median
of same-round pairs, with the smallest and the largest in parentheses. Half load is half of what the peer has just done, in an open loop of ${settings.half} s (\`bench-pace\`, Poisson
arrivals, latency from the intended start, by which it is judged; a request that was not answered counts as one that never was). "From its real start" leaves out how late the
generator itself was. ab sends ${number(settings.ab.requests, 0)} requests, each on a connection of its own; the original's own test was 2,000 of them, with a
longest of 300 ms wanted. (It published 2,718 requests/s, p50 103 ms and p99 316 ms for that, on another machine.)
`;
}

const perCpuSecond = ({ cpu_ns, requests }) => requests / (cpu_ns / 1e9);
const rate = ({ requests, seconds }) => requests / seconds;
const cellName = ({ path, addresses }) => `\`${path}\`${addresses > 1 ? `, ${number(addresses, 0)} addresses` : ''}`;

function waiting(peer, { inCell, titles }) {
  const judged = (value, holds) => (peer === 'hostler' ? verdict(value, holds) : '–');
  const half = inCell('half', peer);
  const runs = inCell('ab', peer);
  const p99 = half.length > 0 ? summary(half.map(({ p99_us: us }) => (us === null ? Infinity : us / 1000))) : null;
  // Null in both where a request never came.
  const served = half.length > 0 ? summary(half.map(({ served_p99_us: us }) => us / 1000)) : null;
  const longest = runs.length > 0 ? summary(runs.map(({ longest_ms: ms, failed }) => (failed > 0 ? Infinity : ms))) : null;
  return [
    titles[peer], p99 ? `${spread(p99, 2)} ms` : 'not measured', judged(p99, ({ median: middle }) => middle < P99_MS),
    served ? `${spread(served, 2)} ms` : 'not measured',
    `${number(median(half.map((row) => row.rate)), 0)}/s`,
    `${number(median(runs.map(({ p50_ms: ms }) => ms)), 0)}; ${number(median(runs.map(({ p99_ms: ms }) => ms)), 0)} ms`,
    longest ? `${spread(longest, 0)} ms` : 'not measured', judged(longest, ({ max }) => max < LONGEST_MS),
  ];
}

function startTable(own) {
  const of = (value) => (own.length > 0 ? summary(own.map(value)) : null);
  const start = of(({ first_answer_ms: ms }) => ms);
  const idle = of(({ idle: { resident } }) => resident / MB);
  const [asked, files] = [of((row) => row.asked.resident / MB), of((row) => row.asked.files / MB)];
  const text = (value, unit, digits) => (value ? `${spread(value, digits)} ${unit}` : 'not measured');
  return table(['Hostler with 41,488 US codes and DB-IP’s city data', 'measured', 'target', ''], [
    ['start of the process to the first answer', text(start, 'ms', 0), `< ${START_MS} ms`, verdict(start, ({ median: middle }) => middle < START_MS)],
    ['resident memory, idle', text(idle, 'MB', 1), `< ${MEMORY_MB} MB`, verdict(idle, ({ median: middle }) => middle < MEMORY_MB)],
    ['the same after questions about 20,000 addresses', text(asked, 'MB', 1), '–', '–'],
    ['... of which pages of mapped files, which the kernel may take back', text(files, 'MB', 1), '–', '–'],
  ]);
}

/** A run with errors keeps its place in the figures and is named here. */
function troubles(rows, titles) {
  const bad = rows.flatMap(({ round, peer, cell, errors = {}, failed = 0, refused = 0 }) => {
    const kinds = Object.entries({ ...errors, failed, refused }).filter(([, count]) => count > 0).map(([kind, count]) => `${count} ${kind}`);
    return kinds.length > 0 ? [`* round ${round}, ${cell}, ${titles[peer] ?? peer}: ${kinds.join(', ')}`] : [];
  });
  return bad.length === 0 ? 'No run had an error.' : `**Runs with errors (kept in the figures):**\n\n${bad.join('\n')}`;
}
