// The render-tail section of RESULTS.md. Knows the rows of results/tail.json and the targets set for them.
import { median, pairedRatio, pooledPercentile, summary } from '../lib/statistics.mjs';
import { AGREED, agreed, number, origin, rounds, spread, table, targetTable } from './format.mjs';

/** With short pages first, the p99 of the slowdown at most so many times that in the order of arrival, at these loads. */
const SLOWDOWN = { atMost: 0.6, loads: [0.7, 0.9] };

/** The targets: p99 at most this many times the other's, at every load. */
const TARGETS = { bound: 1.1, chain: 0.9, cluster: 0.6 };
const SHORT = { bound: 'the ideal queue', chain: 'nginx -> HAProxy', cluster: "Node's cluster", fifo: 'Hostler with `fifo`' };

export function tailSection(result) {
  const { settings, loads, capacity, rows, titles, peers } = result;
  const at = (load, peer) => rows.filter((row) => row.load === load && (!peer || row.peer === peer));
  const ratio = (load, other, one = 'hostler', name = 'p99_us') => pairedRatio(at(load), { one, other, value: late(name) });
  const verdict = (load, other) => agreed(ratio(load, other), (value) => value <= TARGETS[other]);
  const others = Object.keys(TARGETS);
  const targets = loads.flatMap((load) => others.map((other) => [
    `load ${load}: p99 / ${SHORT[other]}`, spread(ratio(load, other), 2), `<= ${number(TARGETS[other], 1)}`, verdict(load, other),
  ]));
  const byLength = shortFirst(result, at, ratio);
  const verdicts = loads.map((load) => [
    String(load), ...others.flatMap((other) => [spread(ratio(load, other), 2), verdict(load, other)]), spread(ratio(load, 'fifo'), 2),
  ]);
  const toBound = peers.map((peer) => [titles[peer], ...loads.map((load) => spread(ratio(load, 'bound', peer), 2))]);
  const text = `## Render tail

${origin(result, ['hostler', 'haproxy', 'nginx', 'node', 'vegeta'])}

p99, Hostler's divided by the other's, with the targets:

${table(['load', ...others.flatMap((other) => [`/ ${SHORT[other]}`, `<= ${number(TARGETS[other], 1)}`]), `/ ${SHORT.fifo}`], verdicts)}

p99 of each peer, divided by that of the ideal queue:

${table(['', ...loads.map((load) => `load ${load}`)], toBound)}

Times in milliseconds, from the planned start of a request to the last byte of its response:

${table(['load', '', 'p50', 'p99', 'p99.9', 'refused', 'failed', 'requests', "wait for a core, of a page's worker", 'CPU of the workers for a page'], figures(result, at))}

${byLength.text}How much the p99 of the ideal queue differs by chance alone (relative standard deviation):

${table(['load', 'requests of each peer', 'over all of them, any arrivals', 'over one round, any arrivals', 'furthest round, chosen arrivals'], chance(result))}

${method({ settings, capacity, rows })}`;
  return { text, targets: [...targets, ...byLength.targets] };
}

/** Short and long pages apart, and the targets of the order `short_first`. Older results do not have these figures. */
function shortFirst({ loads, rows, peers, titles, capacity }, at, ratio) {
  if (!rows.some(({ peer, slowdown_p99: slowdown }) => peer === 'short' && slowdown !== undefined)) return { text: '', targets: [] };
  const slowdown = (load, one) => ratio(load, 'fifo', one, 'slowdown_p99');
  const targets = loads.filter((load) => SLOWDOWN.loads.includes(load)).map((load) => [
    `load ${load}: p99 of the slowdown, \`short_first\` / \`fifo\``, spread(slowdown(load, 'short'), 2), `<= ${SLOWDOWN.atMost}`, agreed(slowdown(load, 'short'), (value) => value <= SLOWDOWN.atMost),
  ]);
  const lines = loads.flatMap((load) => ['fifo', 'hostler', 'short', 'bound'].filter((peer) => peer === 'bound' || peers.includes(peer)).flatMap((peer) => {
    const runs = at(load, peer);
    if (runs.length === 0) return [];
    const ms = (value) => spread(summary(runs.map((row) => never(value(row)) / 1000)), 1);
    return [[
      String(load), titles[peer], ms(({ short }) => short.p99_us), ms(({ long }) => long.p99_us), ms((row) => row.p99_us),
      spread(summary(runs.map(late('slowdown_p99'))), 1), peer === 'fifo' ? '1' : spread(slowdown(load, peer), 2),
    ]];
  }));
  const text = `Short pages first (\`queue.order = "short_first"\`). The slowdown of a page is its time divided by the time of such a page alone: ${number(capacity.render_us.short / 1000, 1)} ms and ${number(capacity.render_us.long / 1000, 1)} ms.

${targetTable(targets)}

p99 in milliseconds, and of the slowdown:

${table(['load', '', 'short pages', 'long pages', 'all pages', 'slowdown', 'slowdown / that with `fifo`'], lines)}

* What the short pages gain, the long ones pay. \`queue.max_delay\` sets how much later than in the order of arrival a page may get a worker. Here it has its default, 500 ms.
* Hostler learns costs by route and path. The pages differ in their query only, so Hostler with \`short_first\` has a route for the long ones (\`when.query\`).
* Here the ideal queue has the order of arrival, too.

`;
  return { text, targets };
}

function figures({ loads, peers, titles }, at) {
  return loads.flatMap((load) => [...peers, 'bound'].flatMap((peer) => {
    const runs = at(load, peer);
    if (runs.length === 0) return [];
    const over = (name) => summary(runs.map(late(name)).map((us) => us / 1000));
    if (peer === 'bound') return [[String(load), titles.bound, '', spread(over('p99_us'), 1), '', '', '', '', '', '']];
    const sum = (name) => runs.reduce((total, row) => total + row[name], 0);
    return [[
      String(load), titles[peer],
      number(over('p50_us').median, 1), spread(over('p99_us'), 1), number(pooledPercentile(runs.map(slowest), 99.9) / 1000, 1),
      number(sum('refused'), 0), number(sum('failed'), 0), number(sum('planned'), 0),
      spread(over('worker_wait_us'), 2), number(over('worker_cpu_us').median, 2),
    ]];
  }));
}

function chance({ ideal }) {
  const percent = (share) => `${number(100 * share, 1)} %`;
  return ideal.map(({ load, requests, relative_any: all, relative_any_round: one, furthest_chosen: furthest }) => [
    String(load), number(requests, 0), percent(all), percent(one), `${percent(furthest)} from the long run`,
  ]);
}

function method({ settings, capacity, rows }) {
  const lags = rows.flatMap(({ start_lag_p99_us: lag }) => (lag === undefined ? [] : [lag / 1000]));
  return `How it is measured:

* \`${settings.app}\` runs with ${settings.workers} workers and NODE_ENV=production. All programs share one machine.
* All peers of a round stand side by side, each warmed up for ${settings.warmup} s. Then they are loaded in turns, in ${settings.slices} slices of ${settings.seconds} s for each peer and load. A peer that has no
  load is idle. ${rounds(settings.rounds)} of new processes.
* The load is an open loop of Poisson arrivals, over ${settings.mix.edges} independent pools of kept connections. Each peer of a round gets the same slices (fixed seeds). A slice begins with an
  empty queue.
* 9 of 10 requests are for \`${settings.short}\` (${number(capacity.render_us.short / 1000, 1)} ms alone). The others are for \`${settings.long}\` (${number(capacity.render_us.long / 1000, 1)} ms alone).
* The capacity is ${number(capacity.rate, 0)} requests/s. Two workers without a proxy rendered that many in a closed loop at the start of the session.
* Hostler, HAProxy and nginx have their default number of threads: one for each core. Hostler and HAProxy give each worker one request at a time. Other requests wait
  up to ${settings.queueTimeout} in the queue.
* **The ideal queue** is simulated: one line in the order of arrival, ${settings.workers} workers, nothing between them (M/G/${settings.workers}). It has the same arrivals. Service times are drawn from those of the two workers
  without a proxy, in the same slices: from the moment when the worker could begin, which is the start of the request or the end of the request before, to the last
  byte of the response. So they include what the generator takes from the workers, and no time in a queue.
* Arrivals are chosen before the measurement: seeds are tried until the ideal queue's p99 over the slices of a round is within 5 % of its p99 over very many slices (or the nearest of 60 tries is
  taken). The choice knows no peer. With any arrivals, chance moves the p99 by more than the peers differ, as the table shows.
* "Wait for a core" is the time that the main thread of a worker was ready to run while another thread had the core (\`/proc/PID/schedstat\`), for each answered page.
* A refused or failed request counts as a response that never came. A dash is a percentile among such requests.
* A ratio is the median of pairs from the same round, with the smallest and the largest pair in parentheses. p50 and p99 are medians over the rounds. p99.9 is over all rounds together.
${AGREED}
* In half of the runs, 99 % of the requests started within ${number(median(lags), 1)} ms of their planned start. This delay is a part of the figures.
`;
}

/** JSON has no infinity: null is a percentile among the responses that never came. */
const never = (us) => us ?? Infinity;
const slowest = ({ planned, slowest_us: us }) => ({ size: planned, largest: us.map(never) });
const late = (name) => (row) => never(row[name]);
