// The deploys section of RESULTS.md. Knows the rows of results/deploys.json and the target set for them.
import { median, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, targetTable, verdict } from './format.mjs';

export function deploysSection(result) {
  const { settings, capacity, rows, titles, peers } = result;
  const of = (peer, value) => rows.filter((row) => row.peer === peer).map(value);
  const bad = (peer) => of(peer, ({ failed, refused }) => failed + refused).reduce((sum, count) => sum + count, 0);
  const own = of('hostler', () => 1).length > 0 ? { median: bad('hostler') } : null;
  const targets = [['no request fails while `hostler restart` replaces the workers', own ? `${number(own.median, 0)} failed` : 'not measured', '0', verdict(own, ({ median }) => median === 0)]];
  const figures = peers.map((peer) => {
    const took = summary(of(peer, ({ deploys_ms: ms }) => ms).flat().map((ms) => ms / 1000));
    const ms = (when, name) => number(median(of(peer, (row) => (row[when][name] ?? Infinity) / 1000)), 0);
    return [
      titles[peer], number(bad(peer), 0), number(of(peer, ({ asked }) => asked).reduce((a, b) => a + b, 0), 0),
      number(took.count, 0), spread(took, 1), ms('during', 'p99_us'), ms('between', 'p99_us'),
    ];
  });
  const text = `## Deploys

${origin(result, ['hostler', 'haproxy', 'pm2', 'node', 'vegeta'])}

${targetTable(targets)}

${table(['', 'failed', 'requests', 'deploys', 'seconds each', 'p99 (ms) during one', 'p99 (ms) between'], figures)}

${troubles(rows, titles)}

How it is measured:

* \`${settings.app}\` runs with ${settings.workers} workers at ${settings.load} of the capacity (${number(capacity.rate, 0)} requests/s), in an open loop, as in the render tail.
* There are ${settings.deploys} deploys, ${settings.pause} s apart. After each deploy, no process from before it may answer.
* A request has failed if it has no 2xx response within ${settings.patience} s. The client (Go) repeats a GET by itself if a kept connection was closed, as browsers do.
* A deploy lasts until its command returns. Hostler: \`hostler restart\`.
* PM2: \`pm2 reload\` of a cluster with \`wait_ready\`, and ten seconds of \`listen_timeout\` and \`kill_timeout\`. The app closes its server at SIGINT, and ends kept connections.
* HAProxy: a script replaces one worker after the other. It starts the new worker, waits for its first page, and sets it to \`ready\`. It sets the old worker to \`drain\`, and
  stops it when it has no session.
* ${rounds(settings.rounds)}. p99 is over the requests during a deploy, and over those between two deploys.
`;
  return { text, targets };
}

function troubles(rows, titles) {
  const bad = rows.filter(({ errors }) => Object.keys(errors).length > 0);
  if (bad.length === 0) return 'No request failed anywhere.';
  return bad.map(({ peer, errors }) => {
    const kinds = Object.entries(errors).map(([kind, count]) => `${number(count, 0)} x ${kind}`);
    return `* ${titles[peer]}: ${kinds.join('; ')}`;
  }).join('\n');
}
