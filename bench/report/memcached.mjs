// The memcached section of RESULTS.md. Knows the rows of results/memcached.json and the targets set for them.
import { median, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, verdict } from './format.mjs';

const NAMES = {
  none: 'not configured',
  fine: 'works',
  slow: 'answers after 1 s',
  garbled: 'sends invalid responses',
  hung: 'accepts requests, never answers',
  gone: 'not running',
};

export function memcachedSection(result) {
  const { settings, states, rows } = result;
  const of = (state) => rows.filter(({ cell, peer }) => cell === state && peer === 'hostler');
  const lines = states.map((state) => {
    const own = of(state);
    const middle = (value) => median(own.map(value));
    const ratio = hitRatio(own, of('none'));
    const failed = own.length > 0 ? own.flatMap(({ hits, misses }) => [hits, misses]).flatMap(({ errors }) => Object.values(errors)).reduce((sum, count) => sum + count, 0) : null;
    return [
      NAMES[state],
      `${number(middle(({ hits }) => cpu(hits)))} µs; ${number(middle(({ hits }) => hits.p99_us / 1000))} ms`, state === 'none' ? '1' : spread(ratio, 2),
      `${number(middle(({ misses }) => rate(misses)), 0)}/s; ${number(middle(({ misses }) => misses.p99_us / 1000))} ms`,
      failed === null ? 'not measured' : number(failed, 0), verdict(failed === null ? null : { failed }, (one) => one.failed === 0),
    ];
  });
  const targets = lines.map((line) => [`memcached ${line[0]}: failed requests`, line[4], '0', line[5]]);
  const text = `## memcached

${origin(result, ['hostler', 'memcached', 'wrk', 'node'])}

Hits and misses of one Hostler, by the state of its memcached. No request may fail because of memcached:

${table(['memcached', 'hit: CPU; p99', 'CPU / CPU without memcached', 'misses; p99', 'failed', '0 failed'], lines)}

How it is measured:

* As in Cache. memcached and the program between it and Hostler run on core 1, with the load and the origin.
* memcached works until the run begins. Then the state of the row begins.
* First come ${settings.seconds} s of misses, each for another page. Then come ${settings.seconds} s of hits on one page of 1 kB. There are ${settings.connections} connections.
* ${rounds(settings.rounds)}, medians. A ratio is the median of pairs from the same round.
* Most of the time of a miss is the origin's: one Node process that shares its core with the rest.
`;
  return { text, targets };
}

const cpu = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
const rate = ({ requests, seconds }) => requests / seconds;

function hitRatio(own, without) {
  const pairs = own.flatMap(({ round, hits }) => {
    const other = without.find((row) => row.round === round);
    return other ? [cpu(hits) / cpu(other.hits)] : [];
  });
  return pairs.length > 0 ? summary(pairs) : null;
}
