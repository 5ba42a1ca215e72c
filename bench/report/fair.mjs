// The section of RESULTS.md on fair queues. Knows the rows of results/fair.json and the targets set for them.
import { jainIndex, median, summary } from '../lib/statistics.mjs';
import { AGREED, agreed, number, origin, rounds, spread, table, targetTable } from './format.mjs';

const P99_MS = 200;
const TIMES_ALONE = 3;
/** How equal the shares of the crawlers must be. */
const JAIN = 0.98;

const EQUALITY = `* The second crawler sends twice as much as the first, the third three times and the fourth four times as much. Each sends more than a quarter of what the people leave, so equal keys have equal shares. The worker time of a crawler is the number
  of its pages before the end of the load, short and long, times the median time of such a page on one worker without other load. Jain's index of these times is 1 if all are equal, and 0.25 if one crawler has everything. It would be 0.83 if each got the share that it asks for.
`;

export function fairSection(result) {
  const { settings, capacity, rows, titles, peers } = result;
  const of = (peer, value) => rows.filter((row) => row.peer === peer).map(value);
  const over = (peer, value) => summarized(of(peer, value));
  const served = (group) => (row) => (100 * row[group].ok) / row[group].planned;
  const ms = (us) => (us ?? Infinity) / 1000;
  const p99 = (row) => ms(row.people.p99_us);
  const bound = (row) => Math.max(P99_MS, TIMES_ALONE * ms(row.alone.p99_us));
  // Worker time of a crawler: its pages by what such a page takes.
  const workerTimes = (row) => row.crawlers.pages.map(({ short, long }) => short * capacity.render_us.short + long * capacity.render_us.long);
  const equality = (row) => jainIndex(workerTimes(row));
  // Results from before 2026-11-26 do not tell the crawlers apart.
  const areTold = rows.every((row) => row.crawlers.pages);
  const areInTime = rows.every((row) => row.people.in_time !== undefined);
  const targets = [
    ['people that are answered (%)', spread(over('fair', served('people')), 1), '100', agreed(over('fair', served('people')), (share) => share === 100)],
    [`p99 of people (ms) / the larger of ${P99_MS} ms and ${TIMES_ALONE} x alone`, spread(over('fair', (row) => p99(row) / bound(row)), 2), '<= 1', agreed(over('fair', (row) => p99(row) / bound(row)), (ratio) => ratio <= 1)],
    ...(areTold ? [["Jain's index of the worker time of the crawlers", spread(over('fair', equality), 3), `>= ${JAIN}`, agreed(over('fair', equality), (index) => index >= JAIN)]] : []),
  ];
  const figures = peers.map((peer) => {
    const middle = (value) => number(median(of(peer, value)), 1);
    const middle3 = (value) => number(median(of(peer, value)), 3);
    return [
      titles[peer], spread(over(peer, served('people')), 1), middle((row) => ms(row.people.p50_us)), middle(p99), middle((row) => ms(row.alone.p99_us)),
      spread(over(peer, served('crawlers')), 1), ...(areTold ? [middle3(equality)] : []), number(median(of(peer, (row) => pagesInTime(row) / settings.during / capacity.rate)), 2),
    ];
  });
  const text = `## People beside crawlers

${origin(result, ['hostler', 'haproxy', 'nginx', 'node', 'vegeta'])}

Hostler with \`queue.fair = "client"\`:

${targetTable(targets)}

${table(['', 'people answered (%)', 'p50 of people (ms)', 'p99 of people (ms)', 'p99 without crawlers (ms)', "crawlers' requests answered (%)", ...(areTold ? ["Jain's index of the crawlers"] : []), 'pages / capacity'], figures)}

How it is measured:

* Four crawlers send ${settings.crawlers.share} x the capacity and ${settings.people.edges} people ${settings.people.share} of it for ${settings.during} s, each with an address of its own, in open loops. The capacity is ${number(capacity.rate, 0)} pages/s: two workers
  without a proxy in a closed loop.
${areTold ? EQUALITY : ''}* A refusal or a failure counts as a response that never came. A client waits at most ${settings.patience} s.
* "pages / capacity" counts pages${areInTime ? '' : ' of crawlers'} only if they came before the end of the load. After it, the queues drain for seconds.
* nginx lets each client send ${settings.limit} requests a second, a tenth of the capacity, with a burst of two seconds. HAProxy behind it queues for the workers, one request at a time each.
* ${rounds(settings.rounds)} of new processes, warmed up for ${settings.warmup} s. Figures are medians over the rounds, with the smallest and the largest in parentheses.
${AGREED}
`;
  return { text, targets };
}

/**
 * The pages before the end of the load. A queue is full at that time and drains for seconds: with those pages, a peer with a longer queue
 * would seem to render more. Where older results do not tell the time, all pages count.
 */
function pagesInTime({ people, crawlers }) {
  const pagesOf = ({ pages }) => pages.reduce((sum, { short, long }) => sum + short + long, 0);
  return (people.in_time ?? people.ok) + (crawlers.pages ? pagesOf(crawlers) : crawlers.ok);
}

const summarized = (values) => (values.length > 0 ? { ...summary(values), values } : null);
