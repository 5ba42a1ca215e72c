// Visitors of the cluster notice nothing when a machine dies, leaves or comes back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@hostler/testkit';
import { members, startCluster } from '../cluster.mjs';
import { failed, visit } from '../load.mjs';

async function clusterFor(t) {
  const cluster = await startCluster();
  if (!cluster) t.skip('nats-server is missing');
  else t.after(cluster.stop);
  return cluster;
}

/** Waits for this many more responses, from one of these machines. */
async function answers(load, count, by) {
  const from = load.gets.length;
  await eventually(`${count} more answers`, () => load.gets.slice(from).filter((get) => !by || get.by === by).length >= count);
}

async function known(edges, count) {
  await eventually(`both edges to know ${count} app hosts`, async () => (await Promise.all(edges.map(members))).every(({ length }) => length === count));
}

test('an app host that is killed under load loses no GET, is pruned, and serves again when it is back', async (t) => {
  const cluster = await clusterFor(t);
  if (!cluster) return;
  const { apps, edges } = cluster;
  const load = visit(edges, { visitors: 8 });
  await answers(load, 100, 'app1');
  await answers(load, 100, 'app2');

  process.kill(apps[1].pid, 'SIGKILL');
  await answers(load, 300);
  await known(edges, 1);
  const after = load.gets.length;
  await answers(load, 100, 'app1');
  assert.deepEqual([...new Set(load.gets.slice(after + 8).map(({ by }) => by))], ['app1'], 'a dead machine renders no pages');

  await cluster.app('app3', '127.0.0.13');
  await answers(load, 100, 'app3');
  const gets = await load.stop();
  assert.deepEqual(gets.filter(failed), []);
});

test('an app host that stops unregisters at the edges before it closes its listener', async (t) => {
  const cluster = await clusterFor(t);
  if (!cluster) return;
  const { apps, edges } = cluster;
  const load = visit(edges, { visitors: 8 });
  await answers(load, 100, 'app1');
  await apps[0].stop();
  await known(edges, 1);
  const line = (text) => apps[0].log.findIndex((each) => each.includes(text));
  await eventually('its log to be complete', () => line('stopping: no new connections') >= 0);
  const unregistered = line('unregistered');
  assert.ok(unregistered >= 0 && unregistered < line('stopping: no new connections'), apps[0].log.join('\n'));
  for (const edge of edges) assert.ok((await edge.status()).registrar.messages.unregistered > 0, 'it was not just silent for too long');
  await answers(load, 100, 'app2');
  const gets = await load.stop();
  assert.deepEqual(gets.filter(failed), []);
});
