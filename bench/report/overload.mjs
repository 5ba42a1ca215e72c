// The overload section of RESULTS.md. Knows the rows of results/overload.json and the targets set for them.
import { median, summary } from '../lib/statistics.mjs';
import { AGREED, agreed, number, origin, rounds, spread, table, targetTable, verdict } from './format.mjs';

const BRIEF = 'With a shorter limit, as in the other row of HAProxy, more do.';
const NOT_BRIEF = 'With a shorter `timeout queue` more would; that was not measured here.';
const GOODPUT = 0.95;
const REFUSAL_US = 15;
const RECOVERY_S = 1;

export function overloadSection(result) {
  const { settings, capacity, rows, titles, peers } = result;
  const of = (peer, value) => rows.filter((row) => row.peer === peer).map(value);
  const work = workOf({ capacity, settings });
  const page = (row) => rows.find(({ peer, round }) => peer === 'bare' && round === row.round) ?? capacity;
  const over = (peer, value) => summarized(of(peer, value));
  const goodput = (peer) => over(peer, (row) => work(row.overload) / allowed(row.overload, { page: page(row), settings }));
  const refusal = (peer) => summarized(of(peer, refusalCost).filter((us) => us !== null));
  const back = (peer) => over(peer, ({ recovery_s: s }) => s ?? Infinity);
  const targets = [
    ["goodput / what the workers' CPU allowed", spread(goodput('hostler'), 2), `>= ${GOODPUT}`, agreed(goodput('hostler'), (share) => share >= GOODPUT)],
    ["CPU of Hostler for a refusal (us)", spread(refusal('hostler'), 1), `<= ${REFUSAL_US}`, ofDifference(refusal('hostler'), (us) => us <= REFUSAL_US)],
    ['seconds until p99 is back to normal', after(back('hostler'), settings.after), `<= ${RECOVERY_S}`, verdict(back('hostler'), ({ max }) => max <= RECOVERY_S)],
  ];
  const room = capacity.rate * settings.during;
  const figures = peers.map((peer) => {
    const during = (value) => of(peer, ({ overload }) => value(overload));
    const ms = (name) => number(median(during((overload) => (overload[name] ?? NaN) / 1000)), 1);
    const sum = (name) => number(during((overload) => overload[name]).reduce((a, b) => a + b, 0), 0);
    return [
      titles[peer], number(median(during((overload) => overload.completed_in_1s / room)), 2),
      ms('p50_us'), ms('p99_us'), sum('refused'), ms('refusal_p50_us'), ms('refusal_p99_us'), sum('failed'), after(back(peer), settings.after),
    ];
  });
  const shares = peers.map((peer) => {
    const share = (value) => spread(over(peer, ({ overload }) => 100 * value(overload)), 0);
    return [
      titles[peer], spread(goodput(peer), 2), spread(over(peer, (row) => (work(row.overload) * page(row).page_cpu_ns) / row.overload.worker_cpu_ns), 2),
      spread(over(peer, ({ overload }) => overload.completed / room), 2),
      share((one) => one.worker_main_ns / time(one, settings)), share((one) => one.worker_wait_ns / time(one, settings)),
      share((one) => 1 - (one.worker_main_ns + one.worker_wait_ns) / time(one, settings)),
      share((one) => one.proxy_cpu_ns / 1e9 / one.cpu_seconds), spread(refusal(peer), 1),
    ];
  });
  const calm = peers.map((peer) => `${titles[peer]} ${number(median(of(peer, ({ calm }) => calm.p99_us / 1000)), 0)} ms`);
  const text = `## Overload

${origin(result, ['hostler', 'haproxy', 'nginx', 'node', 'vegeta'])}

Hostler at ${settings.overload} x the capacity for ${settings.during} s:

${targetTable(targets)}

Goodput, and where the time of the workers went. Times are shares of the workers' main threads, in percent:

${table(['', "goodput / what the workers' CPU allowed", 'goodput / what the used CPU would give', 'goodput / capacity', 'workers ran', 'waited for a core', 'slept', 'CPU of the proxy, % of a core', 'CPU of a refusal (us)'], shares)}

During the overload. Times are in milliseconds, for answered requests and for refused requests:

${table(['', 'goodput within 1 s / capacity', 'p50', 'p99', 'refused', 'refusal p50', 'refusal p99', 'failed', 's to normal'], figures)}

How it is measured:

* As in the render tail: ${settings.before} s at ${settings.calm} of the capacity, ${settings.during} s at ${settings.overload}, then ${settings.after} s at ${settings.calm} again, in an open loop. The capacity is
  ${number(capacity.rate, 0)} requests/s: two workers without a proxy in a closed loop.
* Goodput is the number of 200 responses during the overload. A long page counts as ${number(capacity.render_us.long / capacity.render_us.short, 1)} short ones, so that a peer gains nothing by preferring short pages.
* The generator and the proxy share the two cores with the workers, and twice the requests take more CPU from every peer. **What the workers' CPU allowed** is counted without that: the time in which
  no other process had the core of a worker that was ready to run, divided by the main thread's CPU time of a page without a proxy. Time in which a worker slept counts as allowed: during an
  overload there is always a page to render.
* "What the used CPU would give" is the CPU time that all threads of the workers used, divided by the CPU time of a page without a proxy.
* The page without a proxy is measured in each round: two workers in a closed loop, beside the generator.
* The CPU of a refusal is the CPU of the proxy during the overload, minus its CPU for the answered requests (as much for each as before the overload), divided by the refusals. It includes
  the wait of a refused request in the queue. It can come out below zero, because it is a small difference of two large figures. Then the rounds say nothing about it.
* A client waits at most ${settings.patience} s. A later response counts as failed.
* Hostler and HAProxy let a request wait up to ${settings.queueTimeout} for a worker. No other limit of their queues has an effect here. All have their default number of threads.
* HAProxy's queue is in the order of arrival: at twice the capacity a page soon waits as long as it may, so few come within 1 s. ${peers.includes('brief') ? BRIEF : NOT_BRIEF}
* "Normal" is the worst p99 of a second before the overload (medians of that whole time: ${calm.join(', ')}).
* "s to normal" counts the seconds after the overload with a worse p99. A refusal counts as a response that never came.
* ${rounds(settings.rounds)} of new processes, warmed up for ${settings.warmup} s. Figures are medians over the rounds, with the smallest and the largest in parentheses. Refused and failed requests are sums.
${AGREED}
`;
  return { text, targets };
}

/** The answered pages, weighted by their work: 1 is a page of the usual mix. */
function workOf({ capacity: { render_us: { short, long } }, settings: { mix } }) {
  const mean = (1 - mix.longShare) * short + mix.longShare * long;
  return ({ completed, completed_long: count }) => ((completed - count) * short + count * long) / mean;
}

/** The time of the workers' main threads, in nanoseconds. */
const time = ({ cpu_seconds: seconds }, { workers }) => workers * seconds * 1e9;

/** How many pages the workers could render in the time that was left for them. */
const allowed = (during, { page, settings }) => (time(during, settings) - during.worker_wait_ns) / page.page_main_ns;

/** In microseconds; null without refusals. */
function refusalCost({ calm, overload }) {
  if (overload.refused === 0) return null;
  const answered = (calm.proxy_cpu_ns / calm.answered) * overload.answered;
  return (overload.proxy_cpu_ns - answered) / overload.refused / 1000;
}

/** A verdict about a difference that cannot be below zero. A round in which it is shows that the figures are too coarse for it. */
const ofDifference = (summary, holds) => (summary && summary.min < 0 ? 'not decided: below zero in a round' : agreed(summary, holds));

const summarized = (values) => (values.length > 0 ? { ...summary(values), values } : null);

function after(seconds, most) {
  if (!seconds) return 'not measured';
  return Number.isFinite(seconds.median) ? spread(seconds, 0) : `more than ${most}`;
}
