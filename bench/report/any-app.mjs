// The any-app section of RESULTS.md. Knows the rows of results/any-app.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { CPU, PAIRED, number, origin, rounds, spread, table, verdict } from './format.mjs';

const WITHIN = 0.05;
const OTHERS = ['fixed', 'cluster', 'pm2'];
/** Apps that wait and then compute, as most apps with a database do. Their p99 is compared as well. */
const WITH_DATA = ['data', 'dataLight'];
/** Apps that wait are compared with Node's cluster, the page that computes with one request at a time. */
const WAITING = ['wait20', 'wait200', ...WITH_DATA, 'flood'];
const COMPUTING = 'page';

const rate = ({ ok, seconds }) => ok / seconds;
const cpu = ({ cpu_ns: ns, ok }) => ns / ok;
/** JSON has no infinity: null is a percentile among the responses that never came. */
const p50 = (row) => row.p50_us ?? Infinity;
const p99 = (row) => row.p99_us ?? Infinity;
const bad = ({ refused, failed, lost = 0 }) => refused + failed + lost;

export function anyAppSection(result) {
  const { settings, cells, rows, titles, peers } = result;
  // Without `number`, the rows of all other peers.
  const of = (cell, number) => rows.filter((row) => row.cell === cell && row.concurrency === number);
  const ratio = (cell, other, value) => {
    const pair = { one: 'auto', other, value };
    if (other !== 'fixed') return pairedRatio(of(cell), pair);
    return hardest(cells[cell].fixed.map((number) => pairedRatio([...of(cell), ...of(cell, number)], pair)), value);
  };
  const judged = targetRows({ cells, titles, of, ratio });
  const targets = judged.map(([what, peer, ...rest]) => [`${what} / ${peer}`, ...rest]);
  const text = `## Any app, with nothing set

${origin(result, ['hostler', 'node', 'pm2', 'wrk', 'vegeta', 'go'])}

\`hostler run\` with nothing set, divided by the peer:

${table(['', 'peer', 'ratio', 'target', ''], judged)}

The same ratios for all cells and peers. Below 1 is better for times and CPU, above 1 for requests/s:

${table(['', 'Hostler with nothing set /', 'requests/s', 'p50', 'p99', 'CPU per request'], ratios({ cells, titles, peers, ratio }))}

Medians, times in milliseconds:

${table(['', '', 'requests/s', 'p50', 'p99', 'CPU per request', 'not 2xx', 'no response', 'requests'], figures(result))}

The two kinds of requests of the mixed app, in milliseconds:

${table(['', 'waits: p50', 'waits: p99', 'computes: p50', 'computes: p99'], kinds(result))}

How it is measured:

* \`bench/apps/any\` runs with ${settings.workers} workers. The query of a request says how long the app waits, and how much CPU time it uses. All programs share one machine.
* "${titles.auto}" is \`hostler run --workers ${settings.workers}\`. "${titles.fixed}" also has \`--concurrency\`: ${fixedNumbers(cells)}. Of several numbers, each figure is compared with the one that is best in it.
* No peer writes an access log, so Hostler has \`--log off\`.
* wrk keeps the same number of requests under way all the time: ${['wait20', 'wait200', ...WITH_DATA, 'page'].map((cell) => `${cells[cell].atOnce} ("${cells[cell].title}")`).join(', ')}.
* In the mixed app, ${number(100 * (1 - cells.mixed.longShare), 0)} % of the requests wait 5 ms. The others compute 30 ms. The load generator of the bench keeps ${cells.mixed.atOnce} under way, over ${settings.edges} pools of kept connections.
* Beside ${cells.streams.streams} open event streams, ${cells.streams.pages} pages are requested one after another, each on a new connection. A page without a response after ${settings.patience / 1000} s has failed. A stream that ends also counts as "no response".
* A cold flood is ${cells.flood.atOnce} requests at one signal, and each waits 200 ms. They are the first requests after the start. The figure for requests/s is the number of responses divided by the time of the last one.
* Each run has new processes. A warm-up of ${settings.warmup} s comes before all runs except those of the streams and of the flood. A run lasts ${settings.seconds} s, or ${settings.computeSeconds} s if requests compute.
* wrk counts a request without a response after 2 s as "no response", and its p50 and p99 include refusals. In all other figures, a refusal or a failure counts as a response that never came. A dash is a percentile among such requests.
${CPU}
${PAIRED}
* ${rounds(settings.rounds)}.
`;
  return { text, targets };
}

/**
 * The comparison with the fixed number that is best in this figure. One number for all figures would be too easy: that with the lowest p99
 * can have half of the requests/s of the others.
 */
function hardest(found, value) {
  const isHarder = (one, other) => (value === rate ? one.median < other.median : one.median > other.median);
  return found.filter(Boolean).reduce((one, other) => (one === null || isHarder(other, one) ? other : one), null);
}

function targetRows({ cells, titles, of, ratio }) {
  const upTo = ({ median: middle }) => middle <= 1 + WITHIN;
  const atLeast = ({ median: middle }) => middle >= 1 - WITHIN;
  const line = (cell, what, other, value, target, holds) => {
    const found = ratio(cell, other, value);
    return [`${cells[cell].title}: ${what}`, titles[other], spread(found, 2), target, verdict(found, holds)];
  };
  const waiting = WAITING.flatMap((cell) => [
    line(cell, 'requests/s', 'cluster', rate, `>= ${1 - WITHIN}`, atLeast),
    line(cell, 'p50', 'cluster', p50, `<= ${1 + WITHIN}`, upTo),
    ...(WITH_DATA.includes(cell) ? [line(cell, 'p99', 'cluster', p99, `<= ${1 + WITHIN}`, upTo)] : []),
  ]);
  const refusals = Object.keys(cells).map((cell) => {
    const counted = (some) => (some.length > 0 ? [total(some, bad)] : []);
    const [found = null] = counted(of(cell).filter(({ peer }) => peer === 'auto'));
    const [most = null] = cells[cell].fixed.flatMap((number) => counted(of(cell, number))).sort((one, other) => one - other);
    const isMeasured = found !== null && most !== null;
    const what = isMeasured ? `${number(found, 0)} and ${number(most, 0)}` : 'not measured';
    return [`${cells[cell].title}: requests without a 2xx response`, titles.fixed, what, 'not more', verdict(isMeasured ? {} : null, () => found <= most)];
  });
  return [...waiting, line(COMPUTING, 'p99', 'fixed', p99, `<= ${1 + WITHIN}`, upTo), ...refusals];
}

function ratios({ cells, titles, peers, ratio }) {
  const parts = Object.entries(cells).flatMap(([cell, { title, longShare }]) => [
    { cell, title, values: [rate, p50, p99, cell === 'streams' ? null : cpu] },
    ...(longShare ? [['short', 'waits'], ['long', 'computes']].map(([kind, what]) => ({ cell, title: `${title}: ${what}`, values: [null, (row) => p50(row[kind]), (row) => p99(row[kind]), null] })) : []),
  ]);
  return parts.flatMap(({ cell, title, values }) => OTHERS.filter((other) => peers.includes(other)).map((other) => [
    title, titles[other], ...values.map((value) => (value ? spread(ratio(cell, other, value), 2) : '')),
  ]));
}

function figures({ cells, rows, titles, peers }) {
  return runs({ cells, rows, peers }).map(({ cell, peer, concurrency, own }) => [
    cells[cell].title, named({ titles, peer, concurrency }),
    number(median(own.map(rate)), 0), over(own, p50), over(own, p99), cell === 'streams' ? '' : number(median(own.map(cpu)) / 1e6, 3),
    number(total(own, ({ refused }) => refused), 0), number(total(own, ({ failed, lost = 0 }) => failed + lost), 0),
    number(total(own, ({ ok, refused, failed }) => ok + refused + failed), 0),
  ]);
}

function kinds({ cells, rows, titles, peers }) {
  return runs({ cells, rows, peers }).filter(({ cell }) => cells[cell].longShare).map(({ peer, concurrency, own }) => [
    named({ titles, peer, concurrency }), ...['short', 'long'].flatMap((kind) => [p50, p99].map((value) => over(own, (row) => value(row[kind])))),
  ]);
}

/** The rows of each cell, peer and fixed number. */
function runs({ cells, rows, peers }) {
  return Object.entries(cells).flatMap(([cell, { fixed }]) => peers.flatMap((peer) => (peer === 'fixed' ? fixed : [undefined]).map((concurrency) => {
    const own = rows.filter((row) => row.cell === cell && row.peer === peer && row.concurrency === concurrency);
    return { cell, peer, concurrency, own };
  })));
}

const named = ({ titles, peer, concurrency }) => (concurrency ? `Hostler, concurrency = ${concurrency}` : titles[peer]);
const over = (own, value) => spread(summary(own.map((row) => value(row) / 1000)), 1);
const total = (own, value) => own.reduce((sum, row) => sum + value(row), 0);

/** Which cells have which fixed numbers. Example: `1 (computes 20 ms)`. */
function fixedNumbers(cells) {
  const all = new Map();
  for (const { fixed, title } of Object.values(cells)) {
    const numbers = fixed.join(' or ');
    all.set(numbers, [...(all.get(numbers) ?? []), title]);
  }
  return [...all].map(([numbers, some]) => `${numbers} (${some.join('; ')})`).join(', ');
}
