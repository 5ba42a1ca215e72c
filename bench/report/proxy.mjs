// The proxy-cost section of RESULTS.md. Knows the rows of results/proxy.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { AGREED, PAIRED, agreed, number, origin, rounds, spread, table, troubles } from './format.mjs';

/** The targets: CPU per request at most this many times the peer's, in every cell of the peer. */
const TARGETS = { haproxy: 0.8, chain: 0.33, relay: 1.1 };
const WITHOUT_A_QUEUE = ['nginx', 'relay'];
const SHORT = { haproxy: 'HAProxy', chain: 'nginx -> HAProxy', relay: 'the relay that parses nothing' };

export function proxySection(result) {
  const { settings, cells, rows, titles } = result;
  const names = Object.fromEntries(cells.map((cell) => [key(cell), cellName(cell)]));
  const peers = ['hostler', 'relay', 'haproxy', 'nginx', 'chain'].filter((peer) => rows.some((row) => row.peer === peer));
  const inCell = (cell, peer) => rows.filter((row) => key(row) === key(cell) && (!peer || row.peer === peer));
  const against = (cell, other) => pairedRatio(inCell(cell), { one: 'hostler', other, value: cpuPerRequest });
  const verdict = (cell, other) => agreed(against(cell, other), (ratio) => ratio <= TARGETS[other]);

  const comparable = (cell) => Object.keys(TARGETS).filter((other) => cell.slots > 1 || !WITHOUT_A_QUEUE.includes(other));
  const targets = cells.flatMap((cell) => comparable(cell).map((other) => [
    `${names[key(cell)]}: CPU / ${SHORT[other]}`, spread(against(cell, other), 2), `<= ${number(TARGETS[other], 2)}`, verdict(cell, other),
  ]));
  const columns = ['haproxy', 'chain', 'relay'];
  const verdicts = cells.map((cell) => [
    names[key(cell)],
    ...columns.flatMap((other) => (comparable(cell).includes(other) ? [spread(against(cell, other), 2), verdict(cell, other)] : ['cannot queue', '–'])),
    cell.slots === 1 ? 'cannot queue' : spread(against(cell, 'nginx'), 2),
  ]);
  // A target below the relay's own ratio cannot be met by a proxy that reads and writes each request by system calls.
  const floors = cells.filter((cell) => inCell(cell, 'relay').length > 0).map((cell) => [
    names[key(cell)],
    ...['haproxy', 'chain'].map((other) => spread(pairedRatio(inCell(cell), { one: 'relay', other, value: cpuPerRequest }), 2)),
  ]);
  const figures = peers.map((peer) => [
    titles[peer],
    ...cells.map((cell) => {
      const runs = inCell(cell, peer);
      if (runs.length === 0) return WITHOUT_A_QUEUE.includes(peer) && cell.slots === 1 ? 'cannot queue' : 'not measured';
      return `${number(median(runs.map(cpuPerRequest)))} µs; ${number(median(runs.map(rate)), 0)}/s`;
    }),
  ]);
  const text = `## Proxy cost

${origin(result, ['hostler', 'haproxy', 'nginx', 'wrk'])}

CPU per request: Hostler's divided by the peer's, with the targets. The relay is the floor: it only reads and writes, so what it takes is what
the kernel takes.

${table(['cell', ...columns.flatMap((other) => [`/ ${SHORT[other]}`, `<= ${number(TARGETS[other], 2)}`]), '/ nginx'], verdicts)}

What the relay takes, divided by what the peers take. A proxy that serves each request by the same four system calls, and finds as many requests in a turn, does
not come below these ratios by what it does in user space:

${table(['cell', ...['haproxy', 'chain'].map((other) => `the relay / ${SHORT[other]} (target of Hostler: ${number(TARGETS[other], 2)})`)], floors)}

CPU per request and requests per second, medians:

${table(['one proxy thread', ...cells.map(cellName)], figures)}

${ceiling(rows)}
${troubles(rows, titles, cellName)}

How it is measured:

* One proxy thread runs on core 0. wrk with one thread and the ${settings.members} members run on core 1.
* A request is a GET with seven usual fields. The response is JSON of 200 bytes. Connections are kept alive, members listen on Unix sockets, all timeouts are on, access logs are off.
* CPU is the scheduler's run time of all processes of the peer (\`/proc/PID/task/*/schedstat\`). CPU in clock ticks differs by at most ${number(100 * tickDifference(rows), 1)} % in any run.
* The relay (\`bench/relay\`) has one connection to a member for each client connection. A request is one recv and one send, and so is a response. It has no queue, no limits, no timeouts
  and no log, and it looks at no byte. It is faster than the load, so it rests for 100 µs after each turn. Then it finds about as many requests in a turn as a busy proxy. Without
  the rest it would wake up for each event, and take more CPU for a request. Because of the rest, its requests per second are no maximum.
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and cell, after ${settings.warmup} s of warm-up.
${PAIRED}
${AGREED}
`;
  return { text, targets };
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
