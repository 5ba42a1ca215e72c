// The WebSockets section of RESULTS.md. Knows the rows of results/websockets.json and the target set for them.
import { median, pairedRatio } from '../lib/statistics.mjs';
import { PAIRED, number, origin, rounds, spread, table, verdict } from './format.mjs';

const TARGET = 1.1;

export function websocketsSection(result) {
  const { settings, rates, rows, titles, peers } = result;
  const at = (rate, peer) => rows.filter((row) => row.rate === rate && (!peer || row.peer === peer));
  const others = ['nginx', 'haproxy'].filter((peer) => peers.includes(peer));
  const judged = rates.map((rate) => {
    const ratios = Object.fromEntries(others.map((other) => [other, pairedRatio(at(rate), { one: 'hostler', other, value: cpu })]));
    const met = verdict(ratios.nginx ?? null, ({ median }) => median <= TARGET);
    return { name: `${number(rate, 0)} messages/s`, ratios, met };
  });
  const targets = judged.map(({ name, ratios, met }) => [`${name}: CPU per message / nginx`, spread(ratios.nginx, 2), `<= ${TARGET}`, met]);
  const verdicts = judged.map(({ name, ratios, met }) => [name, ...others.map((other) => spread(ratios[other], 2)), met]);
  const figures = peers.map((peer) => [
    titles[peer],
    ...rates.map((rate) => {
      const runs = at(rate, peer);
      const [us, part, p99] = [cpu, share, delay].map((value) => median(runs.map(value)));
      return `${number(us)} µs; ${number(part, 1)} %; ${number(p99, 1)} ms`;
    }),
  ]);
  const lost = rows.reduce((sum, { sent, echoed }) => sum + sent - echoed, 0);
  const text = `## WebSockets

${origin(result, ['hostler', 'nginx', 'haproxy', 'go'])}

CPU per message through ${number(settings.sockets, 0)} WebSockets: Hostler's divided by the peer's. The target is at most ${TARGET} of nginx's:

${table(['', ...others.map((other) => `/ ${titles[other]}`), `<= ${TARGET} of nginx's`], verdicts)}

CPU per message, share of a core, and p99 from the planned start of a message to its echo, medians:

${table(['one proxy thread', ...rates.map((rate) => `${number(rate, 0)} messages/s`)], figures)}

${lost === 0 ? 'Every message came back.' : `**${number(lost, 0)} messages never came back.**`}

How it is measured:

* A message of ${settings.bytes} bytes goes to a member that echoes it, and comes back. So the proxy handles each message twice.
* Messages are spread evenly over the sockets and over time, in an open loop.
* One proxy thread runs on core 0. The generator and the member run on core 1.
* CPU is the scheduler's run time of all processes of the peer while messages flow, without the handshakes.
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and rate.
${PAIRED}
`;
  return { text, targets };
}

const cpu = ({ cpu_ns, echoed }) => cpu_ns / echoed / 1000;
const share = ({ cpu_ns, seconds }) => (cpu_ns / 1e9 / seconds) * 100;
const delay = ({ p99_us }) => p99_us / 1000;
