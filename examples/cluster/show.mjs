// npm run cluster: kills one of two app hosts under load, and prints what visitors and edges noticed.
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@hostler/testkit';
import { members, startCluster } from './cluster.mjs';
import { failed, visit } from './load.mjs';

const BEFORE = 3_000;
const AFTER = 3_000;

const cluster = await startCluster();
if (!cluster) process.exit(1);
const { apps, edges } = cluster;
console.log(`nats-server ${cluster.nats.url}\napp hosts   ${apps.map(({ url }) => url).join('  ')}\nedges       ${edges.map(({ url }) => url).join('  ')}`);
try {
  const load = visit(edges);
  await sleep(BEFORE);
  const killed = performance.now();
  process.kill(apps[1].pid, 'SIGKILL');
  console.log(`\nkill -9 ${apps[1].pid}: app2 is dead`);
  await sleep(AFTER);
  await eventually('both edges to forget app2', async () => (await Promise.all(edges.map(members))).every(({ length }) => length === 1));
  const forgotten = performance.now();
  const gets = await load.stop();
  report(gets, killed, forgotten);
} finally {
  await cluster.stop();
}

function report(gets, killed, forgotten) {
  const before = gets.filter(({ at, took }) => at + took < killed);
  const during = gets.filter(({ at, took }) => at + took >= killed && at < killed + 1_000);
  const lastOfIt = Math.max(...gets.filter(({ by }) => by === 'app2').map(({ at, took }) => at + took));
  const slowest = (list) => Math.max(...list.map(({ took }) => took)).toFixed(1);
  const share = (list) => `${((100 * list.filter(({ by }) => by === 'app2').length) / list.length).toFixed(0)} % by app2`;
  console.log(`before:  ${before.length} GETs, ${share(before)}, the slowest ${slowest(before)} ms
after:   the last answer of app2 came ${(lastOfIt - killed).toFixed(1)} ms after its death, the slowest GET of the second after it took ${slowest(during)} ms
edges:   had forgotten app2 ${((forgotten - killed) / 1000).toFixed(1)} s after its death (edge.toml: stale_threshold)
failed:  ${gets.filter(failed).length} of ${gets.length} GETs`);
  for (const get of gets.filter(failed).slice(0, 10)) console.log(`         ${JSON.stringify(get)}`);
}
