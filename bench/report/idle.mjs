// The idle section of RESULTS.md. Knows the rows of results/idle.json and the targets set for them.
import { summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, targetTable, verdict } from './format.mjs';

const MEMORY_MB = 20;
const EXTRA_MS = 150;
const WHOLE = 'the proportional set size (PSS) of Hostler and its guard, without the workers: each shared page counts once';
const ALONE = 'VmRSS of the Hostler process, without its workers and without its guard, which is a second process';

export function idleSection(result) {
  const { settings, rows, titles } = result;
  const of = (peer) => rows.filter((row) => row.peer === peer);
  const hostlers = ['hostler', 'hostler2'].filter((peer) => of(peer).length > 0);
  // Older results do not know the memory of the guard.
  const isWhole = rows.some((row) => row.own_bytes !== undefined);
  const memory = (peer) => summary(of(peer).map(({ resident_bytes: resident, own_bytes: own = resident }) => own / 1e6));
  const extra = (peer) => {
    const pairs = of(peer).flatMap((row) => {
      const plain = of('node').find(({ round }) => round === row.round);
      return plain ? [row.first_answer_ms - plain.first_answer_ms] : [];
    });
    return pairs.length > 0 ? summary(pairs) : null;
  };
  const targets = hostlers.flatMap((peer) => [
    [`${titles[peer]}: ${isWhole ? 'memory with the guard' : 'resident memory'}`, `${spread(memory(peer), 1)} MB`, `< ${MEMORY_MB} MB`,
      verdict(memory(peer), ({ median }) => median < MEMORY_MB)],
    [`${titles[peer]}: start to first response, minus the time of plain node`, `${spread(extra(peer), 0)} ms`, `< ${EXTRA_MS} ms`,
      verdict(extra(peer), ({ median }) => median < EXTRA_MS)],
  ]);
  const plain = of('node').length > 0 ? summary(of('node').map((row) => row.first_answer_ms)) : null;
  const text = `## Idle

${origin(result, ['hostler', 'node'])}

${targetTable(targets)}

How it is measured:

* \`${settings.app}\` runs in turns with plain \`node\`: ${rounds(settings.rounds)}. The first response of plain \`node\` took ${spread(plain, 0)} ms${plain ? ` (median of ${number(plain.count, 0)})` : ''}.
* The time is from the start of the process to the first response with status 200. A request is sent every 2 ms. The difference is taken within each round.
* Memory, 2 s after 20 requests, is ${isWhole ? WHOLE : ALONE}.
`;
  return { text, targets };
}
