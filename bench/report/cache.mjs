// The cache section of RESULTS.md. Knows the rows of results/cache.json and the targets set for them.
import { median, pairedRatio, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, troubles, verdict } from './format.mjs';

/** CPU of a hit at most so many times that of nginx, and of Varnish. */
const TARGET = 1;
const RENDERS = 1;

export function cacheSection(result) {
  const { settings, cells, rows, titles, peers } = result;
  const names = { '1 kB': '1 kB, one page', '100 kB': '100 kB, one page', many: `${kilo(settings.size)}, ${number(settings.keys, 0)} pages`, tight: 'where not all fit' };
  const inCell = (name, peer) => rows.filter((row) => row.cell === name && (!peer || row.peer === peer));
  const others = ['nginx', 'varnish'].filter((peer) => peers.includes(peer));
  const hits = cells.map(({ name }) => name).filter((name) => name !== 'tight');
  const verdicts = hits.map((name) => {
    const ratios = others.map((other) => pairedRatio(inCell(name), { one: 'hostler', other, value: cpu }));
    const worst = ratios.length === 0 || ratios.includes(null) ? null : ratios.reduce((one, other) => (other.median > one.median ? other : one));
    return [names[name], ...ratios.map((ratio) => spread(ratio, 2)), verdict(worst, ({ median: middle }) => middle <= TARGET)];
  });
  const figures = hits.map((name) => [
    `${names[name]}: CPU of a hit; hits/s; p99`,
    ...peers.map((peer) => {
      const own = inCell(name, peer);
      return `${number(median(own.map(cpu)))} µs; ${number(median(own.map(rate)), 0)}; ${number(median(own.map(({ p99_us: us }) => us / 1000)))} ms`;
    }),
  ]);
  const tight = cells.find(({ name }) => name === 'tight');
  const share = (peer) => summary(inCell('tight', peer).map(({ misses, requests }) => 100 * (1 - misses / requests)));
  return `## Cache

${origin(result, ['hostler', 'nginx', 'varnish', 'wrk', 'node', 'go'])}

CPU of a hit, Hostler's divided by the peer's; the target is at most ${TARGET} of both:

${table(['hit', ...others.map((other) => `/ ${titles[other]}`), `<= ${TARGET} of both`], verdicts)}

${table(['one cache thread, medians', ...peers.map((peer) => titles[peer])], figures)}

What is a hit where ${number(settings.keys, 0)} pages of ${kilo(settings.size)} meet ${tight.megabytes} MB:

${table(['', ...peers.map((peer) => titles[peer])], [['hits, % of the requests', ...peers.map((peer) => spread(share(peer), 1))]])}

${number(settings.burst, 0)} equal requests at once for a page that is in no cache and takes 200 ms to render:

${table(['', 'renders for each burst', `${RENDERS} render`, 'last answer, median', 'not answered'], peers.map((peer) => burstRow(inCell('burst', peer), { title: titles[peer], isOurs: peer === 'hostler', ...settings })))}

${troubles(rows, titles, ({ cell }) => cell)}

How: one cache thread (Varnish: one pool of threads) on core 0; wrk with one thread, ${settings.connections} connections and a browser's request fields on core 1, and there
too the origin, which counts what reaches it. Everything lies in memory: nginx keeps its files on /dev/shm. Pages are asked for as the web does,
the k-th likeliest with a weight of 1 / k^${settings.exponent}, from a fixed seed; where all fit, each has been asked for once before, where not, the caches have had
400,000 requests to settle. CPU is the scheduler's run time of all the peer's processes. ${rounds(settings.rounds)} of ${settings.seconds} s per peer and cell after ${settings.warmup} s of warm-up,
peers in turns within each round; a ratio is the median of same-round pairs, with the smallest and the largest in parentheses. The bursts come from the
generator of \`photos\`, ${settings.turns + 1} in each round, the first of which makes its connections.
`;
}

const cpu = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
const rate = ({ requests, seconds }) => requests / seconds;
const kilo = (bytes) => `${bytes / 1000} kB`;

function burstRow(own, { title, isOurs, burst }) {
  if (own.length === 0) return [title, 'not measured', 'not measured', '–', '–'];
  const count = own.reduce((sum, { bursts }) => sum + bursts.length, 0);
  const renders = own.reduce((sum, row) => sum + row.renders, 0) / count;
  const all = own.flatMap(({ bursts }) => bursts);
  const missing = all.reduce((sum, { ends }) => sum + burst - (ends['200'] ?? 0), 0);
  return [
    title, number(renders, renders === Math.round(renders) ? 0 : 2), isOurs ? verdict({ renders }, (one) => one.renders === RENDERS) : '–',
    `${number(median(all.map(({ took_us: us }) => us / 1000)), 0)} ms`, number(missing, 0),
  ];
}
