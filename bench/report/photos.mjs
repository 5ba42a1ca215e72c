// The photos section of RESULTS.md. Knows the rows of results/photos.json and the targets set for them.
import { median, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, verdict } from './format.mjs';

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
  const verdicts = counts.flatMap((count) => {
    const failed = failures(count, 'hostler');
    return [
      [`${count} at once: time, of the upstream's own`, spread(ratio(count, 'hostler'), 2), `<= ${RATIO}`, verdict(ratio(count, 'hostler'), ({ median }) => median <= RATIO)],
      [`${count} at once: not answered with a redirect`, failed === null ? 'not measured' : number(failed, 0), '0', verdict(failed === null ? null : { failed }, ({ failed }) => failed === 0)],
    ];
  });
  const ms = (some) => (some.length > 0 ? number(median(some.map(({ took_us: us }) => us / 1000)), 0) : '–');
  const figures = counts.flatMap((count) => ['direct', ...peers].map((peer) => [
    `${count}: ${titles[peer]}`, ms(measured(peer, count)), peer === 'direct' ? '1' : spread(ratio(count, peer), 2),
    ms(of(peer, count).filter(({ phase, turn }) => phase === 'warmup' && turn === 0)), number(failures(count, peer), 0),
  ]));
  return `## Photos

${origin(result, ['hostler', 'nginx', 'node'])}

Hostler with one worker of \`examples/original-photos\`, bursts of lookups of different photos at an upstream of ${settings.latency} ms:

${table(['', 'measured', 'target', ''], verdicts)}

Milliseconds until the last answer of a burst, medians:

${table(['requests at once', 'last answer', "of the upstream's own", 'first burst', 'failed'], figures)}

How: the upstream is the example's stand-in for Flickr's API, one Node process that answers each call after ${settings.latency} ms and has no quota
here. "The upstream itself" is the same burst sent straight to it: what there would be to gain by having nothing in between. All
take turns, and a ratio is the median over pairs of the same turn, with the smallest and the largest. ${rounds(settings.rounds)} of fresh processes:
${settings.warmup} bursts of the larger kind that warm them (Node compiles what runs often), which count for failures only, and of which "first burst" is the
very first, connections included; then ${settings.turns} of each kind, on connections that one more before has made. The generator is written in Go and runs at a
raised priority; it, the upstream, the app and the proxy share ${result.machine.cores} cores, and what they need of them together is most of what is above 1.
`;
}
