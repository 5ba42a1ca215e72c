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
    ['goodput / capacity', spread(goodput('hostler'), 2), `>= ${GOODPUT}`, verdict(goodput('hostler'), ({ median }) => median >= GOODPUT)],
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

During the overload. Times are in milliseconds, for answered requests and for refused requests:

${table(['', 'goodput', 'goodput within 1 s', 'p50', 'p99', 'refused', 'refusal p50', 'refusal p99', 'failed', 's to normal'], figures)}

How it is measured:

* As in the render tail: ${settings.before} s at ${settings.calm} of the capacity, ${settings.during} s at ${settings.overload}, then ${settings.after} s at ${settings.calm} again, in an open loop. The capacity is
  ${number(capacity.rate, 0)} requests/s: two workers without a proxy in a closed loop.
* Goodput is the number of 200 answers during the overload, divided by capacity x ${settings.during} s.
* A client waits at most ${settings.patience} s. A later response counts as failed.
* Hostler and HAProxy let a request wait up to ${settings.queueTimeout} for a worker. No other limit of their queues has an effect here.
* "Normal" is the worst p99 of a second before the overload (medians of that whole time: ${calm.join(', ')}).
* "s to normal" counts the seconds after the overload with a worse p99. A refusal counts as an answer that never came.
* The load generator and the proxies share the two cores with the workers. Twice the requests take more CPU from every peer.
* ${rounds(settings.rounds)} of new processes, warmed up for ${settings.warmup} s. Figures are medians over the rounds, with the smallest and the largest in parentheses. Refused and failed requests are sums.
`;
}

const summarized = (values) => (values.length > 0 ? summary(values) : null);

function after(seconds, most) {
  if (!seconds) return 'not measured';
  return Number.isFinite(seconds.median) ? spread(seconds, 0) : `more than ${most}`;
}
