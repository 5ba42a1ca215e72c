// The TLS section of RESULTS.md. Knows the rows of results/tls.json and the targets set for them.
import { median, pairedRatio, ratioToBest } from '../lib/statistics.mjs';
import { AGREED, CPU, PAIRED, agreed, number, origin, rounds, spread, table, troubles } from './format.mjs';

/** The targets: CPU at most this many times the better peer's. */
const TARGETS = { full: 1.1, resumed: 1.1, http1: 1, 'h2 x 1': 1.1, 'h2 x 20': 1 };
const NAMES = {
  full: 'full handshake',
  resumed: 'resumed handshake',
  http1: 'HTTP/1.1, 50 connections',
  'h2 x 1': 'HTTP/2, 100 connections x 1 stream',
  'h2 x 20': 'HTTP/2, 10 connections x 20 streams',
};

export function tlsSection(result) {
  const { settings, cells, rows, titles, peers } = result;
  const inCell = ({ name }, peer) => rows.filter((row) => row.cell === name && (!peer || row.peer === peer));
  const others = ['haproxy', 'nginx'].filter((peer) => peers.includes(peer));
  const judged = cells.map((cell) => {
    const ratios = others.map((other) => pairedRatio(inCell(cell), { one: 'hostler', other, value: cpu }));
    const [limit, found] = [TARGETS[cell.name], ratioToBest(inCell(cell), { one: 'hostler', others, value: cpu })];
    return { name: NAMES[cell.name], ratios, found, limit, verdict: agreed(found, (ratio) => ratio <= limit) };
  });
  const targets = judged.map(({ name, found, limit, verdict }) => [`${name}: CPU / the better of ${others.map((peer) => titles[peer]).join(' and ')}`, spread(found, 2), `<= ${number(limit, 1)}`, verdict]);
  const verdicts = judged.map(({ name, ratios, limit, verdict }) => [name, ...ratios.map((ratio) => spread(ratio, 2)), number(limit, 1), verdict]);
  const figures = cells.map((cell) => [
    `${NAMES[cell.name]}: CPU; in a CPU second`,
    ...peers.map((peer) => {
      const middle = median(inCell(cell, peer).map(cpu));
      return `${number(middle)} µs; ${number(1e6 / middle, 0)}`;
    }),
  ]);
  const text = `## TLS and HTTP/2

${origin(result, ['hostler', 'haproxy', 'nginx', 'h2load', 'wrk', 'go'])}

CPU per handshake or per request: Hostler's divided by the peer's, and the most that it may be of the better peer's:

${table(['', ...others.map((other) => `/ ${titles[other]}`), 'target', ''], verdicts)}

CPU for one handshake or request, and how many fit into a second of CPU time, medians:

${table(['one proxy thread', ...peers.map((peer) => titles[peer])], figures)}

${troubles(rows, titles, ({ cell }) => NAMES[cell])}

How it is measured:

* TLS 1.3 with X25519, AES-128-GCM or the cipher that the peer prefers, and a P-256 certificate.
* A handshake is a connection, its handshake and one request. There are ${settings.clients} clients at a time. A client that resumes shows a ticket of its last connection. Each run checks this.
* Requests use kept connections: h2load, and wrk for HTTP/1.1, each with one thread.
* One proxy thread runs on core 0. The load generator and ${settings.members} members run on core 1.
${CPU}
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and cell, after ${settings.warmup} s of warm-up.
${PAIRED}
${AGREED}
`;
  return { text, targets };
}

const cpu = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
