// The overload section of RESULTS.md. Knows the rows of results/overload.json and the targets set for them.
import { median, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, verdict } from './format.mjs';

const GOODPUT = 0.95;
const RECOVERY_S = 1;

export function overloadSection(result) {
  const { settings, capacity, rows, titles, peers } = result;
  const of = (peer, value) => rows.filter((row) => row.peer === peer).map(value);
  const room = capacity.rate * settings.during;
  const goodput = (peer) => summarized(of(peer, ({ overload }) => overload.completed / room));
  const back = (peer) => summarized(of(peer, ({ recovery_s: s }) => s ?? Infinity));
  const verdicts = [
    ['goodput, of the capacity', spread(goodput('hostler'), 2), `>= ${GOODPUT}`, verdict(goodput('hostler'), ({ median }) => median >= GOODPUT)],
    ['seconds until p99 is back to normal', after(back('hostler'), settings.after), `<= ${RECOVERY_S}`, verdict(back('hostler'), ({ max }) => max <= RECOVERY_S)],
  ];
  const figures = peers.map((peer) => {
    const during = (value) => of(peer, ({ overload }) => value(overload));
    const ms = (name) => number(median(during((overload) => (overload[name] ?? NaN) / 1000)), 1);
    const sum = (name) => number(during((overload) => overload[name]).reduce((a, b) => a + b, 0), 0);
    return [
      titles[peer], spread(goodput(peer), 2), number(median(during((overload) => overload.completed_in_1s / room)), 2),
      ms('p50_us'), ms('p99_us'), sum('refused'), ms('refusal_p50_us'), ms('refusal_p99_us'), sum('failed'), after(back(peer), settings.after),
    ];
  });
  const calm = peers.map((peer) => `${titles[peer]} ${number(median(of(peer, ({ calm }) => calm.p99_us / 1000)), 0)} ms`);
  return `## Overload

${origin(result, ['hostler', 'haproxy', 'nginx', 'node', 'vegeta'])}

Hostler at ${settings.overload} x the capacity for ${settings.during} s:

${table(['', 'measured', 'target', ''], verdicts)}

During the overload; times in milliseconds, of what was answered and of what was refused:

${table(['', 'goodput', 'of it in 1 s', 'p50', 'p99', 'refused', 'refusal p50', 'refusal p99', 'failed', 's to normal'], figures)}

How: as in the render tail, ${settings.before} s at ${settings.calm} of the capacity (${number(capacity.rate, 0)} requests/s, two bare workers in a closed loop), ${settings.during} s at ${settings.overload},
${settings.after} s at ${settings.calm} again; open loop, whatever the answers. Goodput is what was answered with 200 during the overload, over capacity x ${settings.during} s;
a client waits ${settings.patience} s at most, a later response counts as failed. Hostler and HAProxy let a request wait for a worker for up to ${settings.queueTimeout};
nothing else limits their queues here. "Normal" is the worst p99 of any second before (medians of the whole spell: ${calm.join(', ')});
the figure counts the seconds after the end that are worse, refusals being answers that never came. The generator and the proxies
take their CPU from the same two cores, and twice the requests take more of it from every peer. ${rounds(settings.rounds)} of fresh processes,
warmed for ${settings.warmup} s; medians over the rounds, the smallest and the largest in parentheses, refused and failed added up.
`;
}

const summarized = (values) => (values.length > 0 ? summary(values) : null);

function after(seconds, most) {
  if (!seconds) return 'not measured';
  return Number.isFinite(seconds.median) ? spread(seconds, 0) : `more than ${most}`;
}
