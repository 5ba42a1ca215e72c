// The many-apps section of RESULTS.md. Knows the rows of results/many-apps.json and the targets set for them.
import { summary } from '../lib/statistics.mjs';
import { origin, rounds, spread, table, verdict } from './format.mjs';

const MEMORY_MB = 2000;
const EXTRA_MS = 20;

export function manyAppsSection(result) {
  const { settings, rows } = result;
  const woken = (peer) => rows.filter((row) => row.state === 'woken' && row.peer === peer);
  const plain = woken('node');
  const pairs = woken('hostler').flatMap((row) => {
    const boot = plain.find(({ round, app }) => round === row.round && app === row.app);
    return boot ? [row.first_answer_ms - boot.first_answer_ms] : [];
  });
  const of = (state, figure) => {
    const all = rows.filter((row) => row.state === state).map(figure);
    return all.length > 0 ? summary(all) : null;
  };
  const mb = ({ bytes }) => bytes / 1e6;
  const [extra, awake] = [pairs.length > 0 ? summary(pairs) : null, of('awake', mb)];
  const boots = plain.length > 0 ? summary(plain.map((row) => row.first_answer_ms)) : null;
  const targets = [
    [`memory with all ${settings.apps} apps awake`, `${spread(awake, 0)} MB`, `< ${MEMORY_MB} MB`, verdict(awake, ({ median }) => median < MEMORY_MB)],
    ['the first response of an app that was asleep, minus the boot of the same app without Hostler', `${spread(extra, 0)} ms`, `< ${EXTRA_MS} ms`,
      verdict(extra, ({ median }) => median < EXTRA_MS)],
  ];
  const text = `## Many apps

${origin(result, ['hostler', 'node'])}

${table(['', 'measured', 'target', ''], [
    ...targets,
    ['memory before the first request', `${spread(of('started', mb), 1)} MB`, '', ''],
    ['memory with all apps asleep again', `${spread(of('asleep', mb), 1)} MB`, '', ''],
    [`time until all are asleep, with \`shrink_after = "${settings.sleep_after}"\``, `${spread(of('asleep', (row) => row.asleep_after_ms / 1000), 1)} s`, '', ''],
  ])}

How it is measured:

* ${settings.apps} times \`${settings.app}\` in one Hostler, each in its own pool with \`workers = { min = 0, max = 4 }\` and on its own host: ${rounds(settings.rounds)}.
* The apps are woken one after the other, in turns with a boot of the same app without Hostler, which took ${spread(boots, 0)} ms to its first response. The difference is taken for each app.
* Memory is the proportional set size (PSS) of Hostler, its guard and all workers: each shared page counts once.
`;
  return { text, targets };
}
