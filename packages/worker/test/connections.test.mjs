// Connections between Hostler and a worker end only when Hostler closes them, whatever timeouts the app has.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '@hostler/testkit';

import { startWorker } from './support/hostler.mjs';

// All timeouts of the fixture are 200 ms and are checked every 50 ms, so this is long enough.
const LONG_MS = 700;

for (const form of ['requests', 'sockets']) {
  test(`an idle connection is kept, however short the timeouts that the app sets on server and ${form}`, async (t) => {
    const worker = await startWorker(t, 'timeouts', ['node', 'server.mjs', form]);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());

    await worker.get('/', { agent });
    for (let i = 0; i < 2; i += 1) {
      await pause(LONG_MS);
      const { status, reused } = await worker.get('/', { agent });
      assert.deepEqual({ status, reused }, { status: 200, reused: true });
    }
  });
}

test('a connection may be opened long before its first request, and a request may arrive slowly', async (t) => {
  const worker = await startWorker(t, 'timeouts', ['node', 'server.mjs']);
  const { socketPath } = await worker.address();
  const connection = net.connect(socketPath).setEncoding('utf8');
  t.after(() => connection.destroy());

  await pause(LONG_MS);
  connection.write('GET / HTTP/1.1\r\nHost: app.example\r\n');
  await pause(LONG_MS);
  connection.write('\r\n');

  const [answer] = await once(connection, 'data');
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
});

test('the app may limit its connections: Hostler gets as many as it opens, and a note', async (t) => {
  const source = `const server = require('http').createServer((req, res) => res.end(String(server.maxConnections)));
    server.maxConnections = 1;
    server.listen(3000, () => { server.maxConnections = 2; });`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', source]);
  await worker.saidTimes('note', 2);
  const { socketPath } = await worker.address();
  for (let i = 0; i < 3; i += 1) {
    const connection = net.connect(socketPath);
    t.after(() => connection.destroy());
  }
  assert.deepEqual(await worker.get('/'), { status: 200, body: 'undefined', reused: false });
  const texts = worker.messages.filter(({ act }) => act === 'note').map(({ text }) => text.split(' of the app')[0]);
  assert.deepEqual(texts, ['server.maxConnections = 1', 'server.maxConnections = 2']);
});

test('each connection has a port of its own, by which server-destroy and many apps tell connections apart', async (t) => {
  const source = `require('http').createServer((req, res) => res.end(String(req.socket.remotePort))).listen(3000)`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', source]);
  const ports = await Promise.all([1, 2, 3].map(async () => Number((await worker.get()).body)));
  assert.equal(new Set(ports).size, 3, String(ports));
  assert.ok(ports.every((port) => port > 0 && port <= 65_535), String(ports));
});

test('an app may reset a connection, which ends it', async (t) => {
  const source = `require('http').createServer((req, res) => req.url === '/reset' ? req.socket.resetAndDestroy() : res.end('lives')).listen(3000)`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', source]);
  await assert.rejects(worker.get('/reset'));
  assert.equal((await worker.get()).body, 'lives');
});

test('a server that gives its place to the app in the same turn keeps its own limits, because others connect to it', async (t) => {
  const source = `const http = require('http');
    const metrics = http.createServer({ keepAliveTimeout: 1234, headersTimeout: 2345, requestTimeout: 3456 });
    metrics.listen(${await freePort()}, '127.0.0.1');
    http.createServer((req, res) => res.end(String([metrics.keepAliveTimeout, metrics.headersTimeout, metrics.requestTimeout]))).listen(process.env.PORT);`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', source], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  assert.equal((await worker.get()).body, '1234,2345,3456');
});

test('a server that gives its place to the app limits the connections on its TCP port as the app has said', async (t) => {
  const port = await freePort();
  const source = `const other = require('net').createServer((socket) => socket.write('welcome'));
    other.maxConnections = 1;
    other.on('drop', () => console.log('dropped'));
    other.listen(${port}, '127.0.0.1');
    require('http').createServer((req, res) => res.end('app')).listen(process.env.PORT);`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', source], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  await worker.said('note'); // it listens there

  const first = net.connect(port, '127.0.0.1');
  t.after(() => first.destroy());
  await once(first, 'data');
  assert.equal(await isServed(t, port), false);
  await worker.printed(/dropped/);
});

const hasIpv6 = Object.values(os.networkInterfaces()).flat().some(({ family }) => family === 'IPv6');

test('a server that gives its place to the app listens with the options of its listen()', { skip: !hasIpv6 && 'no IPv6' }, async (t) => {
  const port = await freePort();
  const source = `require('net').createServer((socket) => socket.write('welcome')).listen({ port: ${port}, host: '::', ipv6Only: true });
    require('http').createServer((req, res) => res.end('app')).listen(process.env.PORT);`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', source], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  await worker.said('warning'); // it listens there

  assert.deepEqual(worker.tcpPorts(), [port]);
  assert.equal(await isServed(t, port), false, 'IPv4');
});

function isServed(t, port) {
  const connection = net.connect(port, '127.0.0.1').on('error', () => {}); // 'close' follows
  t.after(() => connection.destroy());
  return new Promise((resolve) => connection.once('data', () => resolve(true)).once('close', () => resolve(false)));
}
