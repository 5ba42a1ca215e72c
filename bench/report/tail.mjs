// The render-tail section of RESULTS.md. Knows the rows of results/tail.json and the targets set for them.
import { median, pairedRatio, pooledPercentile, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, verdict } from './format.mjs';

const TARGET_LOAD = 0.7;
/** "Below Node's cluster": the median is at most this, and no round is at 1 or above. */
const CLEARLY = 0.8;

export function tailSection(result) {
  const { settings, loads, capacity, rows, titles, peers } = result;
  const at = (load, peer) => rows.filter((row) => row.load === load && (!peer || row.peer === peer));
  const p99 = (load, other) => pairedRatio(at(load), { one: 'hostler', other, value: late('p99_us') });
  const figures = loads.flatMap((load) =>
    peers.map((peer) => {
      const runs = at(load, peer);
      const over = (name) => summary(runs.map(late(name)).map((us) => us / 1000));
      const sum = (name) => runs.reduce((total, row) => total + row[name], 0);
      return [
        String(load), titles[peer],
        number(over('p50_us').median, 1), spread(over('p99_us'), 1), number(pooledPercentile(runs.map(slowest), 99.9) / 1000, 1),
        number(sum('refused'), 0), number(sum('failed'), 0), number(sum('planned'), 0),
      ];
    }),
  );
  const ratios = loads.map((load) => [String(load), spread(p99(load, 'chain'), 2), spread(p99(load, 'cluster'), 2)]);
  const toChain = p99(TARGET_LOAD, 'chain');
  const toCluster = p99(TARGET_LOAD, 'cluster');
  const verdicts = [
    ['at most that of nginx -> HAProxy', spread(toChain, 2), verdict(toChain, ({ median }) => median <= 1)],
    [
      `below Node's cluster (median <= ${CLEARLY}, every round < 1)`,
      spread(toCluster, 2),
      verdict(toCluster, ({ median, max }) => median <= CLEARLY && max < 1),
    ],
  ];
  return `## Render tail

${origin(result, ['hostler', 'haproxy', 'nginx', 'node', 'vegeta'])}

p99 at ${TARGET_LOAD} of the capacity, Hostler's divided by the peer's:

${table(['target', 'ratio', ''], verdicts)}

Times in milliseconds, from the planned start of a request to the last byte of its answer:

${table(['load', '', 'p50', 'p99', 'p99.9', 'refused', 'failed', 'requests'], figures)}

The same p99 ratio at each load:

${table(['load', '/ nginx -> HAProxy', "/ Node's cluster"], ratios)}

How it is measured:

* \`${settings.app}\` runs with ${settings.workers} workers and NODE_ENV=production. All programs share one machine.
* The load is an open loop of Poisson arrivals. Each peer of a round gets the same schedule (fixed seed), over ${settings.mix.edges} independent pools of kept connections.
* 9 of 10 requests are for \`${settings.short}\` (${number(capacity.render_us.short / 1000, 1)} ms alone). The others are for \`${settings.long}\` (${number(capacity.render_us.long / 1000, 1)} ms alone).
* The capacity is ${number(capacity.rate, 0)} requests/s. Two workers without a proxy rendered that many in a closed loop at the start of the session.
* Hostler and HAProxy give each worker one request at a time. Other requests wait up to ${settings.queueTimeout} in the queue.
* A refused or failed request counts as an answer that never came. A dash is a percentile among such requests.
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and load, in turns. Each round has new processes, all warmed up for ${settings.warmup} s.
* p50 and p99 are medians over the rounds, with the smallest and the largest in parentheses. p99.9 is over all rounds together.
* In half of the runs, 99 % of the requests started within ${number(median(rows.map(({ start_lag_p99_us: lag }) => lag / 1000)), 1)} ms of their planned start. This delay is a part of the figures.
`;
}

/** JSON has no infinity: null is a percentile among the responses that never came. */
const never = (us) => us ?? Infinity;
const slowest = ({ planned, slowest_us: us }) => ({ size: planned, largest: us.map(never) });
const late = (name) => (row) => never(row[name]);
