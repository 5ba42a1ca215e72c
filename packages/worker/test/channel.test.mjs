// The messages between worker and Hostler, over Node's IPC channel and over the control socket.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { eventually } from '@hostler/testkit';

import { behindNode, startWorker } from './support/hostler.mjs';

const { to_hostler: examples, to_worker: orders } = JSON.parse(
  fs.readFileSync(new URL('../../../protocol/messages.json', import.meta.url), 'utf8'),
);

const positions = [
  { position: 'the direct child', via: 'fd', command: (file) => ['node', file] },
  { position: 'a grandchild', via: 'path', command: behindNode },
];

for (const { position, via, command } of positions) {
  test(`${position} sends the messages of protocol/messages.json`, async (t) => {
    const worker = await startWorker(t, 'pm2', command('server.cjs'));
    await worker.saidByApp(examples.ready);
    const example = examples[`listening_${via}`];
    const listening = await worker.said('listening');

    assert.deepEqual(Object.keys(listening), Object.keys(example));
    assert.deepEqual({ ...listening, pid: example.pid }, example);
    assert.deepEqual(await worker.said('hears'), examples.hears);
    assert.deepEqual(worker.appMessages, [examples.ready]);
  });

  test(`${position} stops when it is told "shutdown", as under PM2`, async (t) => {
    const worker = await startWorker(t, 'pm2', command('server.cjs'));
    await worker.saidByApp('ready');
    worker.send(orders.shutdown);

    assert.deepEqual(await worker.ended(), { code: 0, signal: null });
    assert.match(worker.output, /stops as asked/);
  });

  test(`${position} without a message listener does not report that it listens`, async (t) => {
    const worker = await startWorker(t, 'plain-http', command('server.mjs'));
    await worker.get();
    assert.deepEqual(worker.messages.map(({ act }) => act), ['listening']);
  });

  test(`${position} ends when Hostler dies`, async (t) => {
    const worker = await startWorker(t, 'plain-http', command('server.mjs'));
    const { pid } = await worker.said('listening');
    worker.closeChannels();
    await worker.isGone(pid);
  });

  test(`${position} ends some seconds after Hostler dies even if it ignores SIGTERM`, async (t) => {
    const worker = await startWorker(t, 'stubborn', command('server.mjs'));
    const { pid } = await worker.said('listening');
    worker.closeChannels();
    await worker.printed(/SIGTERM, but it stays/);
    await worker.isGone(pid);
  });

  test(`${position} whose server has closed is not kept alive by the preload`, async (t) => {
    const worker = await startWorker(t, 'brief', command('server.mjs'));
    assert.deepEqual(await worker.ended(), { code: 0, signal: null });
  });

  test(`${position} reports on its event loop on request, and the app sees no message`, async (t) => {
    const worker = await startWorker(t, 'pm2', command('server.cjs'));
    await worker.said('listening');
    worker.send(orders.report);
    const first = await worker.said('report');
    assert.deepEqual(Object.keys(first), Object.keys(examples.report));
    assert.ok(first.active > 0 && first.idle >= 0, JSON.stringify(first));

    worker.send(orders.report);
    await worker.saidTimes('report', 2);
    assert.ok(worker.messages.at(-1).active >= first.active);
    assert.equal(worker.exit, null);
  });

  test(`${position} collects garbage on request`, async (t) => {
    const worker = await startWorker(t, 'plain-http', command('server.mjs'));
    await worker.said('listening');
    for (const order of [orders.collect_minor, orders.collect_major]) {
      worker.send(order);
      const collected = await eventually('it says so', () => worker.messages.find(({ act, kind }) => act === 'collected' && kind === order.kind));
      assert.deepEqual(Object.keys(collected), Object.keys(examples.collected));
      assert.ok(collected.micros > 0);
    }
  });

  test(`${position} answers a request to write its compile cache`, async (t) => {
    const worker = await startWorker(t, 'plain-http', command('server.mjs'));
    await worker.said('listening');
    worker.send(orders.flush);
    assert.deepEqual(await worker.said('flushed'), examples.flushed);
  });

  test(`${position} that disconnects continues to run`, async (t) => {
    const worker = await startWorker(t, 'disconnects', command('server.mjs'));
    await worker.printed(/disconnected/);
    const { body } = await worker.get();
    assert.deepEqual(body, { app: 'disconnects', connected: false, port: 3000 });
    if (via === 'fd') assert.deepEqual(await worker.said('disconnects'), examples.disconnects);
  });
}

test('a collection is of the requested kind: the young generation, or all', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', '--trace-gc', 'server.mjs']);
  await worker.said('listening');
  worker.send(orders.collect_minor);
  await worker.printed(/Scavenge[^\n]*testing/i);
  assert.doesNotMatch(worker.output, /Mark-[^\n]*testing/i);
  worker.send(orders.collect_major);
  await worker.printed(/Mark-[^\n]*testing/i);
});

test('an app that listens for messages and never listens on a port is kept alive by its own listener only', async (t) => {
  const worker = await startWorker(t, 'pm2', ['node', '-e', '0']);
  assert.deepEqual(await worker.ended(), { code: 0, signal: null });
  const hearing = await startWorker(t, 'pm2', ['node', '-e', 'process.on("message", (m) => process.exit(m === "shutdown" ? 7 : 1))']);
  await hearing.said('hears');
  hearing.send('shutdown');
  assert.deepEqual(await hearing.ended(), { code: 7, signal: null });
});

test('a message listener added before the preload counts', async (t) => {
  const early = new URL('support/hears-early.cjs', import.meta.url).pathname;
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs'], { nodeOptions: `--require ${early}` });
  await worker.said('hears');
});

test('an app may replace process.send', async (t) => {
  const replaced = 'process.send = () => { throw new Error("not this one"); }; require("./server.cjs")';
  const worker = await startWorker(t, 'koa', ['node', '-e', replaced]);
  await worker.said('listening');
});

test('a grandchild keeps the channel to its own parent, and Hostler gets its messages too', async (t) => {
  const forks = `require('child_process').fork('server.cjs').on('message', (message) => console.log('its parent hears', message))`;
  const worker = await startWorker(t, 'pm2', ['node', '-e', forks]);
  await worker.printed(/its parent hears ready/);
  const { via, pid } = await worker.said('listening');

  assert.equal(via, 'path');
  assert.deepEqual(worker.messages.filter((message) => message.pid === pid), [{ ...examples.listening_path, pid }]);
  worker.closeChannels();
  await worker.isGone(pid);
});

/** A program in `node_modules` that starts the app with a channel of its own, as tsx does (`passes`: its messages, too) and `next dev`. */
function launcher(t, passes) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'launcher-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'node_modules/run/cli.js');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `const child = require('child_process').spawn(process.execPath, process.argv.slice(2), { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
    child.on('message', (message) => process.send(message));
    child.on('close', (code) => process.exit(code));
    if (${passes}) process.on('message', (message) => child.send(message));`);
  return file;
}

test('a program that passes messages on to the app, as tsx does, does not make it an app that listens for them', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', launcher(t, true), 'server.mjs']);
  await worker.get();
  assert.deepEqual(worker.messages.map(({ act }) => act), ['listening']);
});

test('an app behind a program that passes messages on is told "shutdown"', async (t) => {
  const worker = await startWorker(t, 'pm2', ['node', launcher(t, true), 'server.cjs']);
  await worker.saidByApp('ready');
  assert.equal((await worker.said('listening')).via, 'path');
  assert.deepEqual(await worker.said('hears'), examples.hears);
  worker.send(orders.shutdown);

  assert.deepEqual(await worker.ended(), { code: 0, signal: null });
  assert.match(worker.output, /stops as asked/);
});

test('an app that listens for messages of the program that has started it, and only for those, is not told "shutdown"', async (t) => {
  const worker = await startWorker(t, 'pm2', ['node', launcher(t, false), 'server.cjs']);
  await worker.saidByApp('ready');
  await worker.get();
  assert.deepEqual(worker.messages.map(({ act }) => act), ['listening']);
});

test('an app that is itself a program in node_modules says that it listens for messages', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'app-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'node_modules/app/server.cjs');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.copyFileSync(new URL('apps/pm2/server.cjs', import.meta.url), file);
  const worker = await startWorker(t, 'pm2', ['node', file]);
  await worker.said('hears');
  worker.send(orders.shutdown);
  assert.deepEqual(await worker.ended(), { code: 0, signal: null });
});
