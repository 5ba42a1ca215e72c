// The photos section of RESULTS.md. Knows the rows of results/photos.json and the targets set for them.
import { median, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, targetTable, verdict } from './format.mjs';

const RATIO = 1.2;

export function photosSection(result) {
  const { settings, counts, rows, titles, peers } = result;
  const of = (peer, count) => rows.filter((row) => row.peer === peer && row.count === count);
  const measured = (peer, count) => of(peer, count).filter(({ phase }) => phase === 'measured');
  const ratio = (count, peer) => {
    const pairs = measured(peer, count).flatMap((row) => {
      const alone = measured('direct', count).find(({ round, turn }) => round === row.round && turn === row.turn);
      return alone ? [row.took_us / alone.took_us] : [];
    });
    return pairs.length > 0 ? summary(pairs) : null;
  };
  const failures = (count, peer) => {
    const own = of(peer, count);
    return own.length > 0 ? own.reduce((sum, { ok }) => sum + count - ok, 0) : null;
  };
  const targets = counts.flatMap((count) => {
    const failed = failures(count, 'hostler');
    return [
      [`${count} at once: time / time of the upstream`, spread(ratio(count, 'hostler'), 2), `<= ${RATIO}`, verdict(ratio(count, 'hostler'), ({ median }) => median <= RATIO)],
      [`${count} at once: requests without a redirect`, failed === null ? 'not measured' : number(failed, 0), '0', verdict(failed === null ? null : { failed }, ({ failed }) => failed === 0)],
    ];
  });
  const ms = (some) => (some.length > 0 ? number(median(some.map(({ took_us: us }) => us / 1000)), 0) : '–');
  const figures = counts.flatMap((count) => ['direct', ...peers].map((peer) => [
    `${count}: ${titles[peer]}`, ms(measured(peer, count)), peer === 'direct' ? '1' : spread(ratio(count, peer), 2),
    ms(of(peer, count).filter(({ phase, turn }) => phase === 'warmup' && turn === 0)), number(failures(count, peer), 0),
  ]));
  const text = `## Photos

${origin(result, ['hostler', 'nginx', 'node'])}

Hostler with one worker of \`examples/original-photos\`: bursts of requests for different photos, with an upstream that takes ${settings.latency} ms:

${targetTable(targets)}

Milliseconds until the last response of a burst, medians:

${table(['requests at once', 'last response', '/ the upstream itself', 'first burst', 'failed'], figures)}

How it is measured:

* The upstream is the example's stand-in for Flickr's API. It is one Node process that answers each call after ${settings.latency} ms. It has no quota here.
* "The upstream itself" is the same burst sent directly to the upstream. No peer can be faster.
* All peers take turns. A ratio is the median over pairs of the same turn, with the smallest and the largest in parentheses.
* ${rounds(settings.rounds)} of new processes. First come ${settings.warmup} bursts of the larger kind as a warm-up. Of them, only failures count. "First burst" is the first of them, with the time
  to open its connections.
* Then come ${settings.turns} bursts of each kind. One more burst before them opens the connections.
* The generator is a Go program with raised priority. Generator, upstream, app and proxy share ${result.machine.cores} cores. Most of a ratio above 1 is the CPU that they use together.
`;
  return { text, targets };
}
