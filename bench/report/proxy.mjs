// The proxy-cost section of RESULTS.md. Knows the rows of results/proxy.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { PAIRED, number, origin, rounds, spread, table, troubles, verdict } from './format.mjs';

/** The targets: CPU per request at most this many times the peer's, in every cell. */
const TARGETS = { haproxy: 0.9, chain: 0.5 };

export function proxySection(result) {
  const { settings, cells, rows, titles } = result;
  const names = Object.fromEntries(cells.map((cell) => [key(cell), cellName(cell)]));
  const peers = ['hostler', 'haproxy', 'nginx', 'chain'].filter((peer) => rows.some((row) => row.peer === peer));
  const inCell = (cell, peer) => rows.filter((row) => key(row) === key(cell) && (!peer || row.peer === peer));

  const ratios = cells.map((cell) => {
    const against = (other) => pairedRatio(inCell(cell), { one: 'hostler', other, value: cpuPerRequest });
    return { cell, haproxy: against('haproxy'), nginx: against('nginx'), chain: against('chain') };
  });
  const verdicts = ratios.map(({ cell, haproxy, nginx, chain }) => [
    names[key(cell)],
    spread(haproxy, 2), verdict(haproxy, ({ median }) => median <= TARGETS.haproxy),
    spread(chain, 2), verdict(chain, ({ median }) => median <= TARGETS.chain),
    cell.slots === 1 ? 'cannot queue' : spread(nginx, 2),
  ]);
  const figures = peers.map((peer) => [
    titles[peer],
    ...cells.map((cell) => {
      const runs = inCell(cell, peer);
      if (runs.length === 0) return peer === 'nginx' ? 'cannot queue' : 'not measured';
      return `${number(median(runs.map(cpuPerRequest)))} µs; ${number(median(runs.map(rate)), 0)}/s`;
    }),
  ]);
  return `## Proxy cost

${origin(result, ['hostler', 'haproxy', 'nginx', 'wrk'])}

CPU per request: Hostler's divided by the peer's. The targets are at most ${number(TARGETS.haproxy, 1)} of HAProxy's and at most
${number(TARGETS.chain, 1)} of nginx -> HAProxy's, in each of the four cells.

${table(['cell', '/ HAProxy', `<= ${TARGETS.haproxy}`, '/ nginx -> HAProxy', `<= ${TARGETS.chain}`, '/ nginx'], verdicts)}

CPU per request and requests per second, medians:

${table(['one proxy thread', ...cells.map(cellName)], figures)}

${ceiling(rows)}
${troubles(rows, titles, cellName)}

How it is measured:

* One proxy thread runs on core 0. wrk with one thread and the ${settings.members} members run on core 1.
* A request is a GET with seven usual fields. The answer is JSON of 200 bytes. Connections are kept alive, members listen on Unix sockets, all timeouts are on, access logs are off.
* CPU is the scheduler's run time of all processes of the peer (\`/proc/PID/task/*/schedstat\`). CPU in clock ticks differs by at most ${number(100 * tickDifference(rows), 1)} % in any run.
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and cell, after ${settings.warmup} s of warm-up.
${PAIRED}
`;
}

const key = ({ slots, connections }) => `${slots}/${connections}`;
const cellName = ({ slots, connections }) => `${slots} slot${slots > 1 ? 's' : ''}, c = ${connections}`;
const cpuPerRequest = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
const rate = ({ requests, seconds }) => requests / seconds;

function ceiling(rows) {
  const direct = rows.filter((row) => row.peer === 'direct');
  if (direct.length === 0) return '';
  const { median: middle, min } = summary(direct.map(rate));
  return `wrk and one member without a proxy: ${number(middle, 0)} requests/s (at least ${number(min, 0)}).\n`;
}

function tickDifference(rows) {
  return Math.max(0, ...rows.filter(({ cpu_ns }) => cpu_ns > 0).map(({ cpu_ns, cpu_ticks_ns }) => Math.abs(cpu_ticks_ns / cpu_ns - 1)));
}
