// The deploys section of RESULTS.md. Knows the rows of results/deploys.json and the target set for them.
import { median, summary } from '../lib/statistics.mjs';
import { number, origin, rounds, spread, table, verdict } from './format.mjs';

export function deploysSection(result) {
  const { settings, capacity, rows, titles, peers } = result;
  const of = (peer, value) => rows.filter((row) => row.peer === peer).map(value);
  const bad = (peer) => of(peer, ({ failed, refused }) => failed + refused).reduce((sum, count) => sum + count, 0);
  const own = of('hostler', () => 1).length > 0 ? { median: bad('hostler') } : null;
  const figures = peers.map((peer) => {
    const took = summary(of(peer, ({ deploys_ms: ms }) => ms).flat().map((ms) => ms / 1000));
    const ms = (when, name) => number(median(of(peer, (row) => (row[when][name] ?? Infinity) / 1000)), 0);
    return [
      titles[peer], number(bad(peer), 0), number(of(peer, ({ asked }) => asked).reduce((a, b) => a + b, 0), 0),
      number(took.count, 0), spread(took, 1), ms('during', 'p99_us'), ms('between', 'p99_us'),
    ];
  });
  return `## Deploys

${origin(result, ['hostler', 'haproxy', 'pm2', 'node', 'vegeta'])}

${table(['target', 'measured', ''], [['no request fails while `hostler restart` replaces the workers', own ? `${number(own.median, 0)} failed` : 'not measured', verdict(own, ({ median }) => median === 0)]])}

${table(['', 'failed', 'requests', 'deploys', 'seconds each', 'p99 (ms) during one', 'p99 (ms) between'], figures)}

${troubles(rows, titles)}

How: \`${settings.app}\` with ${settings.workers} workers at ${settings.load} of the capacity (${number(capacity.rate, 0)} requests/s), open loop, as in the render tail. ${settings.deploys} deploys, ${settings.pause} s
apart; after each, no process of before may answer. Failed is all that was not answered with 2xx in ${settings.patience} s; the client, Go's, sends
a GET again by itself when a kept connection turns out to have been closed, as browsers do. A deploy lasts until its command returns: \`hostler restart\`;
\`pm2 reload\` of a cluster with \`wait_ready\`, ten seconds of \`listen_timeout\` and \`kill_timeout\`, and an app that closes its
server at SIGINT and ends kept connections; and for HAProxy a script that starts a successor, waits for its first page, sets it \`ready\`, its
predecessor \`drain\`, and stops that when it has no session left, worker by worker. ${rounds(settings.rounds)}; p99 over what was asked during a deploy
and between two.
`;
}

function troubles(rows, titles) {
  const bad = rows.filter(({ errors }) => Object.keys(errors).length > 0);
  if (bad.length === 0) return 'No request failed anywhere.';
  return bad.map(({ peer, errors }) => {
    const kinds = Object.entries(errors).map(([kind, count]) => `${number(count, 0)} x ${kind}`);
    return `* ${titles[peer]}: ${kinds.join('; ')}`;
  }).join('\n');
}
