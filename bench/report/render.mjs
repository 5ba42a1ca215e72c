// The render section of RESULTS.md. Knows the rows of results/render.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { PAIRED, number, origin, rounds, spread, table, targetTable, verdict } from './format.mjs';

const THROUGHPUT = 1.5;
const BURST_P99 = 0.5;
const PAIR = { one: 'hostler', other: 'hypernova' };

export function renderSection(result) {
  const { settings, islands, capacity, rows, titles, peers } = result;
  const loops = (island) => rows.filter((row) => row.island === island);
  const bursts = rows.filter((row) => row.during);
  const ratio = (some, value) => pairedRatio(some, { ...PAIR, value });
  const targets = Object.entries(islands).map(([island, { title, elements }]) => {
    const throughput = ratio(loops(island), ({ requests, seconds }) => requests / seconds);
    return [`batches/s, ${title} (${counted(elements)})`, spread(throughput, 2), `>= ${THROUGHPUT}`, verdict(throughput, (it) => it.median >= THROUGHPUT)];
  });
  const late = ratio(bursts, ({ during }) => during.p99_us ?? Infinity);
  targets.push(['p99 in bursts', spread(late, 2), `<= ${BURST_P99}`, verdict(late, (it) => it.median <= BURST_P99)]);
  const { calm, burst } = settings;
  const text = `## Render

${origin(result, ['hostler', 'node', 'wrk', 'vegeta'])} npm hypernova ${settings.hypernova}, React ${settings.react} for both.

Hostler with @hostler/render, divided by npm hypernova with its own cluster. Each has ${settings.workers} workers, and a batch has one job:

${targetTable(targets)}

In a closed loop with ${settings.connections} connections. CPU is that of all processes of the peer:

${table(['', '', 'batches/s', 'CPU each (us)', 'p50 (ms)', 'p99 (ms)', 'errors'], loopFigures({ islands, peers, titles, loops }))}

In bursts. Times are in milliseconds, from the planned start of a request:

${table(['', 'p50 in bursts', 'p99 in bursts', 'p99 between', 'refused', 'failed', 'requests'], burstFigures({ bursts, peers, titles }))}

How it is measured:

* The services are in \`bench/apps/islands\`: the same components, the same React, NODE_ENV=production. Neither service logs successful requests. Their responses are compared
  before the measurement.
* Closed loop: wrk for ${settings.seconds} s, after ${settings.warmup} s of warm-up.
* Bursts: an open loop over ${settings.edges} independent pools of kept connections. Both services get the same Poisson arrivals (fixed seed), for ${islands[settings.burstIsland].title}. ${calm.seconds} s at ${calm.load} of the
  capacity and ${burst.seconds} s at ${burst.load} are repeated ${settings.bursts} times.
* The capacity is what npm hypernova answers to that generator in a closed loop: ${number(capacity.rate, 0)} batches/s. A refused or failed request counts as a response that never came.
* Hostler gives each worker two batches: one to render, and one that waits in the worker. Other batches wait up to ${settings.queueTimeout} in Hostler's queue.
* Node's cluster gives connections to its workers in turn.
* The generators share the two cores with the services.
* ${rounds(settings.rounds)} of new processes.
${PAIRED}
`;
  return { text, targets };
}

function loopFigures({ islands, peers, titles, loops }) {
  return Object.entries(islands).flatMap(([island, { title }]) =>
    peers.map((peer) => {
      const runs = loops(island).filter((row) => row.peer === peer);
      const errors = runs.flatMap((row) => Object.values(row.errors)).reduce((sum, count) => sum + count, 0);
      return [
        title, titles[peer], spread(over(runs, ({ requests, seconds }) => requests / seconds), 0), spread(over(runs, ({ cpu_ns, requests }) => cpu_ns / requests / 1000), 0),
        number(median(runs.map(({ p50_us }) => p50_us / 1000)), 1), number(median(runs.map(({ p99_us }) => p99_us / 1000)), 1), number(errors, 0),
      ];
    }),
  );
}

function burstFigures({ bursts, peers, titles }) {
  return peers.map((peer) => {
    const runs = bursts.filter((row) => row.peer === peer);
    const ms = (when, name) => over(runs, (row) => (row[when][name] ?? Infinity) / 1000);
    const sum = (name) => number(runs.reduce((total, row) => total + row[name], 0), 0);
    return [
      titles[peer], spread(ms('during', 'p50_us'), 1), spread(ms('during', 'p99_us'), 1), spread(ms('between', 'p99_us'), 1),
      sum('refused'), sum('failed'), sum('asked'),
    ];
  });
}

const over = (runs, value) => (runs.length > 0 ? summary(runs.map(value)) : null);
const counted = (elements) => (elements === 1 ? '1 element' : `${elements} elements`);
