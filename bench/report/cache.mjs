// The cache section of RESULTS.md. Knows the rows of results/cache.json and the targets set for them.
import { median, pairedRatio, ratioToBest, summary } from '../lib/statistics.mjs';
import { likeliest } from '../lib/zipf.mjs';
import { CPU, PAIRED, number, origin, rounds, spread, table, troubles, verdict } from './format.mjs';

/** The target: CPU per hit at most this many times that of nginx and of Varnish. */
const TARGET = 1;
const RENDERS = 1;

export function cacheSection(result) {
  const { settings, cells, rows, titles, peers } = result;
  const names = { '1 kB': '1 kB, one page', '100 kB': '100 kB, one page', many: `${kilo(settings.size)}, ${number(settings.keys, 0)} pages`, tight: 'not all fit' };
  const inCell = (name, peer) => rows.filter((row) => row.cell === name && (!peer || row.peer === peer));
  const others = ['nginx', 'varnish'].filter((peer) => peers.includes(peer));
  const hits = cells.map(({ name }) => name).filter((name) => name !== 'tight');
  const judged = hits.map((name) => {
    const ratios = others.map((other) => pairedRatio(inCell(name), { one: 'hostler', other, value: cpu }));
    const worst = ratioToBest(inCell(name), { one: 'hostler', others, value: cpu });
    return { name: names[name], ratios, worst, met: verdict(worst, ({ median: middle }) => middle <= TARGET) };
  });
  const verdicts = judged.map(({ name, ratios, met }) => [name, ...ratios.map((ratio) => spread(ratio, 2)), met]);
  const burst = burstRow(inCell('burst', 'hostler'), { title: titles.hostler, isOurs: true, ...settings });
  const targets = [
    ...judged.map(({ name, worst, met }) => [`${name}: CPU of a hit / the better cache`, spread(worst, 2), `<= ${TARGET}`, met]),
    [`renders for ${number(settings.burst, 0)} equal requests`, burst[1], String(RENDERS), burst[2]],
  ];
  const figures = hits.map((name) => [
    `${names[name]}: CPU of a hit; hits/s; p99`,
    ...peers.map((peer) => {
      const own = inCell(name, peer);
      return `${number(median(own.map(cpu)))} µs; ${number(median(own.map(rate)), 0)}; ${number(median(own.map(({ p99_us: us }) => us / 1000)))} ms`;
    }),
  ]);
  const tight = cells.find(({ name }) => name === 'tight');
  const text = `## Cache

${origin(result, ['hostler', 'nginx', 'varnish', 'wrk', 'node', 'go'])}

CPU for a hit: Hostler's divided by the peer's. The target is at most ${TARGET} against both:

${table(['hit', ...others.map((other) => `/ ${titles[other]}`), `<= ${TARGET} against both`], verdicts)}

${table(['one cache thread, medians', ...peers.map((peer) => titles[peer])], figures)}

Hits when ${number(settings.keys, 0)} pages of ${kilo(settings.size)} are requested and the cache has ${tight.megabytes} MB:

${table(['', ...peers.map((peer) => titles[peer])], tightRows(peers.map((peer) => inCell('tight', peer)), { ...settings, megabytes: tight.megabytes }))}

${number(settings.burst, 0)} equal requests at the same time, for a page that no cache has and that takes 200 ms to render:

${table(['', 'renders for each burst', `${RENDERS} render`, 'last response, median', 'not answered'], peers.map((peer) => burstRow(inCell('burst', peer), { title: titles[peer], isOurs: peer === 'hostler', ...settings })))}

${troubles(rows, titles, ({ cell }) => cell)}

How it is measured:

* One cache thread runs on core 0 (Varnish: one thread pool). wrk runs on core 1 with one thread, ${settings.connections} connections and the request fields of a browser. The origin
  runs on core 1 too, and counts the requests that reach it.
* All caches store in memory. The files of nginx are on /dev/shm.
* Pages are requested with a Zipf distribution: the k-th page has the weight 1 / k^${settings.exponent}. The seed is fixed.
* Where all pages fit, each page was requested once before the run. Where they do not fit, the caches served 400,000 requests before the run.
* Each cache counts its memory in its own way. Hostler counts heads, keys and bodies. nginx counts files in blocks of the file system, and checks the sum every ten seconds.
  Varnish counts what it allocates for objects.
* So the memory is what the system reports: empty, filled, and at the end. It is the proportional set size of all processes (\`smaps_rollup\`; a shared page counts once)
  and the blocks of nginx's files, with files that are removed and still open.
* "Hits possible in as many bytes" assumes that the memory above the empty process holds the most likely pages and nothing else.
${CPU}
* ${rounds(settings.rounds)} of ${settings.seconds} s for each peer and cell, after ${settings.warmup} s of warm-up.
${PAIRED}
* Bursts come from the generator of \`photos\`: ${settings.turns + 1} in each round. The first one opens its connections.
`;
  return { text, targets };
}

const cpu = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
const rate = ({ requests, seconds }) => requests / seconds;
const kilo = (bytes) => `${bytes / 1000} kB`;

const MB = 1e6;
const bytes = ({ processes, files }) => processes + files;

/** Hits, with their memory and CPU. `each`: the rows of each peer. */
function tightRows(each, { keys, exponent, size, megabytes }) {
  const line = (title, value, written) => [title, ...each.map((rows) => {
    const known = rows.filter((row) => value(row) !== undefined);
    return known.length > 0 ? written(summary(known.map(value))) : 'not measured';
  })];
  const kept = ({ memory }) => memory && bytes(memory.most) - bytes(memory.empty);
  const hits = ({ misses, requests }) => 100 * (1 - misses / requests);
  const possible = (row) => row.memory && 100 * likeliest({ keys, exponent, count: Math.floor(kept(row) / size) });
  const one = (value) => spread(value, 1);
  return [
    line('hits, % of the requests', hits, one),
    line(`memory used with a limit of ${megabytes} MB, in MB`, (row) => row.memory && bytes(row.memory.most) / MB, one),
    line('... of it files', ({ memory }) => memory && memory.most.files / MB, one),
    line('... of it used before the first page', ({ memory }) => memory && bytes(memory.empty) / MB, one),
    line('hits possible in as many bytes, %', possible, one),
    line('hits / possible hits', (row) => row.memory && hits(row) / possible(row), (value) => spread(value, 2)),
  ];
}

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
