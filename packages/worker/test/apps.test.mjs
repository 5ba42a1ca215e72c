// Unmodified apps of all kinds, started in the way of Hostler: each answers over the socket and opens no TCP port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, freePort } from '@hostler/testkit';

import { startWorker } from './support/hostler.mjs';

const fromAfar = { 'x-forwarded-for': '8.8.8.8', 'x-forwarded-proto': 'https' };

const apps = [
  { name: 'Express 5 (CommonJS)', app: 'express-cjs', command: 'node server.cjs', ip: '8.8.8.8', proto: 'https' },
  { name: 'Express 5 (ES module)', app: 'express-esm', command: 'node server.mjs', ip: '8.8.8.8', proto: 'https' },
  { name: 'Fastify 5 (CommonJS)', app: 'fastify-cjs', command: 'node server.cjs', ip: '8.8.8.8', proto: 'https' },
  { name: 'Fastify 5 (ES module)', app: 'fastify-esm', command: 'node server.mjs', ip: '8.8.8.8', proto: 'https' },
  { name: 'Hono', app: 'hono', command: 'node server.mjs', ip: '127.0.0.1' },
  { name: 'Koa', app: 'koa', command: 'node server.cjs', ip: '8.8.8.8', proto: 'https' },
  { name: 'node:http', app: 'plain-http', command: 'node server.mjs number', ip: '127.0.0.1' },
  { name: 'an app that closes connections quickly', app: 'timeouts', command: 'node server.mjs' },
];

for (const { name, app, command, ip, proto } of apps) {
  test(`${name} answers over the descriptor, sees loopback addresses and opens no TCP port`, async (t) => {
    const worker = await startWorker(t, app, command.split(' '));

    const listening = await worker.said('listening');
    const { status, body } = await worker.get('/', { headers: fromAfar });

    assert.deepEqual(listening, { cmd: 'NODE_HOSTLER', act: 'listening', via: 'fd', pid: worker.child.pid, port: 3000 });
    assert.equal(status, 200);
    assert.equal(body.port, 3000);
    assert.equal(body.ip, ip);
    assert.equal(body.proto, proto);
    assert.deepEqual(worker.tcpPorts(), []);
  });
}

test('a connection has the address of the server', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', 'host']);
  assert.deepEqual((await worker.get()).body.local, { address: '::1', family: 'IPv6', port: 3000 });
});

test('Fastify resolves its listen() with the address that it asked for', async (t) => {
  const worker = await startWorker(t, 'fastify-cjs', ['node', 'server.cjs']);
  await worker.printed(/listening at http:\/\/(127\.0\.0\.1|localhost):3000/);
});

test('the client address is still known when the connection is gone', async (t) => {
  const worker = await startWorker(t, 'express-cjs', ['node', 'server.cjs']);
  await worker.get('/', { headers: { connection: 'close' } });
  await worker.printed(/^access 127\.0\.0\.1 GET \/$/m);
});

test('npm start: the grandchild listens on the path and speaks over the control socket', async (t) => {
  const worker = await startWorker(t, 'npm-start', ['npm', 'start']);

  const listening = await worker.said('listening');
  await worker.saidByApp('ready');
  await worker.said('hears');
  const { body } = await worker.get();

  assert.equal(listening.via, 'path');
  assert.notEqual(listening.pid, worker.child.pid);
  assert.deepEqual(body, { app: 'pm2', ip: '127.0.0.1', port: 3000 });
  assert.deepEqual(worker.tcpPorts(), []);

  worker.send('shutdown');
  assert.deepEqual(await worker.ended(), { code: 0, signal: null });
  assert.match(worker.output, /stops as asked/);
});

test('an app that is a cluster answers from both of its workers, which see addresses as well', async (t) => {
  const worker = await startWorker(t, 'cluster', ['node', 'server.cjs']);

  const pids = new Set();
  await eventually('both workers answer', async () => {
    const { body } = await worker.get();
    assert.deepEqual({ ip: body.ip, port: body.port }, { ip: '127.0.0.1', port: 3000 });
    return pids.add(body.pid).size === 2;
  });
  assert.deepEqual(worker.tcpPorts(), []);
});

for (const [who, opens] of [['its primary before it forks', 'before'], ['its primary after it has forked', 'after'], ['its worker', 'worker']]) {
  test(`a cluster that opens a port for metrics first, in ${who}, answers from its worker on PORT, and the metrics get their port`, async (t) => {
    const metrics = await freePort();
    const env = { PORT: '41000', HOSTLER_GIVEN_PORT: '41000', METRICS_PORT: String(metrics) };
    const worker = await startWorker(t, 'cluster-metrics', ['node', 'server.cjs', opens], { env });
    await eventually('the worker listens', () => worker.messages.some(({ act, port }) => act === 'listening' && port === 41_000), () => worker.output);
    assert.match((await worker.said('note')).text, new RegExp(`listens on 127\\.0\\.0\\.1:${metrics} directly, .* because Hostler uses its server on PORT`));

    assert.deepEqual((await worker.get()).body, { app: 'cluster', ip: '127.0.0.1', port: 41_000 });
    assert.equal(await (await fetch(`http://127.0.0.1:${metrics}/`)).text(), 'metrics, 1234 ms');
    assert.deepEqual(worker.tcpPorts(), [metrics]);
  });
}

for (const [kind, speaks] of [['https', 'TLS'], ['http2', 'HTTP/2 only']]) {
  test(`a cluster whose workers open a server of ${kind} first answers from the plain one, and the other gets its port and a warning`, async (t) => {
    const secure = await freePort();
    const worker = await startWorker(t, 'cluster-secure', ['node', 'server.cjs', kind], { env: { SECURE_PORT: String(secure) } });
    assert.equal((await worker.said('listening')).port, 3000);

    assert.deepEqual((await worker.get()).body, { app: 'cluster', ip: '127.0.0.1', port: 3000 });
    assert.deepEqual(worker.tcpPorts(), [secure]);
    const warnings = worker.messages.filter(({ act }) => act === 'warning').map(({ text }) => text.split(';')[0]);
    assert.deepEqual(warnings, [`the app listens on port ${secure} with ${speaks}`]);
  });
}

test('a cluster worker that replaces a dead one is set up the same way, even if it was the only one', async (t) => {
  const worker = await startWorker(t, 'cluster', ['node', 'server.cjs', '1']);
  const before = await worker.get();
  await assert.rejects(worker.get('/crash'));
  await worker.saidTimes('listening', 2);

  const after = await worker.get();

  assert.notEqual(after.body.pid, before.body.pid);
  assert.deepEqual({ ip: after.body.ip, port: after.body.port }, { ip: '127.0.0.1', port: 3000 });
  assert.deepEqual(worker.tcpPorts(), []);
});
