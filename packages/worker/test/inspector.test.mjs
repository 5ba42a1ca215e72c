// The port on which the inspector of a worker opens after SIGUSR1, and profiles and heap snapshots that come to nothing.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { freePort } from '@hostler/testkit';

import { behindNode, startWorker, withoutPermissions } from './support/hostler.mjs';

const LISTENING = /Debugger listening on ws:\/\/127\.0\.0\.1:(\d+)\//;

for (const [position, command] of [['the app', ['node', 'server.mjs']], ['the app as a grandchild', behindNode('server.mjs')]]) {
  test(`SIGUSR1 opens the inspector of ${position} on a free port of loopback`, async (t) => {
    const worker = await startWorker(t, 'plain-http', command);
    const { pid } = await worker.said('listening');
    process.kill(pid, 'SIGUSR1');
    const [, port] = await worker.printed(LISTENING);
    assert.notEqual(port, '9229');
    assert.deepEqual(worker.tcpPorts(), [Number(port)]);
  });
}

test('an inspector port that the operator has chosen stays', async (t) => {
  const port = await freePort();
  for (const option of [`--inspect-port=${port}`, `--inspect=${port}`, `--debug_port=${port}`]) {
    const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs'], { nodeOptions: option });
    const { pid } = await worker.said('listening');
    process.kill(pid, 'SIGUSR1');
    const [, opened] = await worker.printed(LISTENING);
    assert.equal(Number(opened), port, option);
    await worker.end();
  }
});

test('a profile that the permission model of Node forbids fails with a reason, and the app lives', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', ...withoutPermissions(), 'server.mjs']);
  await worker.said('listening');
  const asked = path.join(worker.dir, 'profile');
  const hostler = net.createServer().listen(asked);
  t.after(() => hostler.close());
  worker.send({ cmd: 'NODE_HOSTLER', act: 'profile', path: asked, micros: 1000 });

  const [connection] = await once(hostler, 'connection');
  const [text] = await once(connection.setEncoding('utf8'), 'data');
  assert.match(text, /^failed: .+\n$/);
  connection.resume().end(); // as Hostler does then
  await once(connection, 'close');
  assert.equal((await worker.get()).body.app, 'http');
});

test('a profile or heap snapshot that Hostler does not wait for any more is not taken', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs']);
  await worker.said('listening');
  for (const act of ['profile', 'heap']) worker.send({ cmd: 'NODE_HOSTLER', act, path: path.join(worker.dir, act), micros: 1000 });
  // The second report is asked for after the turn in which a snapshot would be written.
  for (const times of [1, 2]) {
    worker.send({ cmd: 'NODE_HOSTLER', act: 'report' });
    await worker.saidTimes('report', times);
  }
  assert.deepEqual(worker.messages.filter(({ act }) => act === 'inspecting' || act === 'inspected'), []);
  assert.ok(!fs.existsSync(path.join(worker.dir, 'heap')));
});
