// The claims of a worker's processes: which script only starts the app, and the files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { eventually, freePort } from '@hostler/testkit';

import { behindNode, startWorker } from './support/hostler.mjs';

const GIVEN = { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' };

/** A launcher script and an app at paths of their own. Returns whether the app is taken for a helper that another app may have started. */
async function isHelperOf(t, launcher) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'launcher-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const file = path.join(folder, launcher);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `require('child_process').spawn(process.execPath, ['-e', "require('http').createServer().listen(3000)"], { stdio: 'inherit' })`);
  const named = path.basename(file) === 'index.js' ? path.dirname(file) : file;
  const worker = await startWorker(t, 'koa', ['node', named], { env: GIVEN });
  return (await worker.said('listening')).helper === true;
}

for (const launcher of ['nodejs/app/server.js', 'npm-mirror/index.js', 'yarn-shop/index.js', 'yarn-shop/server.js', 'npm-proxy.js', 'yarnshop']) {
  test(`${launcher} is not taken for a tool that only starts the app`, async (t) => {
    assert.equal(await isHelperOf(t, launcher), true);
  });
}

for (const launcher of ['node_modules/x/cli.js', 'npm-cli.js', 'yarn-4.1.0.cjs', 'yarn-berry.cjs', 'pnpm.cjs', 'yarn']) {
  test(`${launcher} is a tool that only starts the app`, async (t) => {
    assert.equal(await isHelperOf(t, launcher), false);
  });
}

test('a claim that is being written is taken, and one whose server was closed is free', async (t) => {
  const port = await freePort();
  const script = `const claim = process.env.HOSTLER_LISTEN_PATH + '.1.claim';
    require('fs').writeFileSync(claim, process.env.CLAIM);
    require('http').createServer().listen(${port}, '127.0.0.1');`;
  const free = await startWorker(t, 'koa', ['node', '-e', script], { env: { ...GIVEN, CLAIM: '-' } });
  assert.equal((await free.said('listening')).nth, 2);
  assert.deepEqual(free.tcpPorts(), []);
  const taken = await startWorker(t, 'koa', ['node', '-e', script], { env: { ...GIVEN, CLAIM: '' } });
  assert.match((await taken.said('warning')).text, /because another process of this worker has listened before/);
  assert.deepEqual(taken.tcpPorts(), [port]);
});

test('an app behind another process listens on its path although the disk is full', async (t) => {
  const full = new URL('support/full-disk.cjs', import.meta.url).pathname;
  const worker = await startWorker(t, 'plain-http', behindNode('server.mjs'), { nodeOptions: `--require ${full}` });
  assert.equal((await worker.said('listening')).via, 'path');
  assert.equal((await worker.get()).body.port, 3000);
  assert.deepEqual(worker.tcpPorts(), []);
});

test('a claim leaves no other file, and is free when the server is closed', async (t) => {
  const script = `const app = require('http').createServer().listen(3000); process.on('message', (text) => text === 'close' && app.close());`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: GIVEN });
  const { pid } = await worker.said('listening');
  const claims = () => fs.readdirSync(worker.dir).filter((name) => /claim|made-/.test(name)).map((name) => [name, fs.readFileSync(path.join(worker.dir, name), 'utf8')]);
  assert.deepEqual(claims(), [['web-1-7.app.1.claim', `${pid} 2 `]]);
  worker.child.send('close');
  await worker.said('closed');
  await eventually('the claim is free', () => claims().length === 1 && claims()[0][1] === '-');
});

test('a server that the preload cannot handle listens by itself, is reported, and leaves the next one alone', async (t) => {
  const port = await freePort();
  const script = `const { createServer } = require('http');
    const odd = Object.defineProperty(createServer(), 'setSecureContext', { get() { throw new Error('odd server'); } });
    odd.listen(${port}, '127.0.0.1', () => createServer((request, response) => response.end('{}')).listen(3000));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script]);
  const { text, unused } = await worker.said('warning');
  assert.match(text, /^Hostler cannot use a server of the app, which listens without it: Error: odd server +at /);
  assert.equal(unused, true);
  assert.equal((await worker.said('listening')).port, 3000);
  assert.deepEqual(worker.tcpPorts(), [port]);
});

test('a server that the preload cannot dress leaves no claim', async (t) => {
  const port = await freePort();
  const script = `const { createServer } = require('http');
    const odd = Object.defineProperty(createServer(), 'address', { value: () => ({}), writable: false });
    odd.listen(${port}, '127.0.0.1', () => createServer((request, response) => response.end('app')).listen(3000));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script]);
  assert.equal((await worker.said('listening')).port, 3000);
  assert.equal((await worker.get()).body, 'app');
  assert.deepEqual(worker.tcpPorts(), [port]);
});

for (const [position, command] of [['the app', (script) => ['node', '-e', script]], ['a grandchild', (script) => ['node', '-e', `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(script)}], { stdio: 'inherit' })`]]]) {
  test(`after a server of ${position} that closes in the same turn, the next listen is the app`, async (t) => {
    const script = `const { createServer } = require('http');
      createServer().listen(3000).close();
      createServer((request, response) => response.end('app')).listen(3001);`;
    const worker = await startWorker(t, 'koa', command(script), { env: GIVEN });
    assert.equal((await worker.said('listening')).port, 3001);
    assert.equal((await worker.get()).body, 'app');
    assert.deepEqual(worker.tcpPorts(), []);
    assert.deepEqual(worker.messages.map(({ act }) => act), ['listening']);
  });
}

test('a server that closes and listens again in the same turn is the app, and is reported once', async (t) => {
  const script = `const app = require('http').createServer((request, response) => response.end('app')).listen(3000);
    app.close();
    app.listen(3000);`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: GIVEN });
  assert.deepEqual([(await worker.said('listening')).nth, (await worker.get()).body], [2, 'app']);
  assert.deepEqual(worker.messages.map(({ act }) => act), ['listening']);
});

test('a process that has closed a server in the same turn, and then starts the app, leaves it the place', async (t) => {
  const script = `require('net').createServer().listen(0).close();
    require('child_process').spawn(process.execPath, ['server.mjs'], { stdio: 'inherit' });`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', script], { env: GIVEN });
  assert.equal((await worker.get()).body.port, 3000);
  assert.deepEqual(worker.tcpPorts(), []);
});

test('a server that asks for its own port again and again is reported once', async (t) => {
  const port = await freePort();
  const script = `const [first, second] = [require('http').createServer(), require('http').createServer()];
    const again = (left) => {
      second.once('error', () => (left > 0 ? again(left - 1) : first.close(() => second.listen(${port}, '127.0.0.1', () => setImmediate(() => process.send('listens'))))));
      second.listen(${port}, '127.0.0.1');
    };
    first.listen(${port}, '127.0.0.1', () => setImmediate(again, 12));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: { HOSTLER_APP_PORT: '3000' } });
  await worker.saidByApp('listens');
  assert.deepEqual(worker.messages.map(({ act }) => act), ['warning', 'warning'], 'one of each server');
  assert.doesNotMatch(worker.output, /MaxListenersExceededWarning/);
});

test('a server that was the app and later opens a TCP port has its own limits again, and is reported', async (t) => {
  const port = await freePort();
  const script = `const { createServer } = require('http');
    const first = createServer({ keepAliveTimeout: 1234 });
    const app = createServer((request, response) => response.end(String([first.keepAliveTimeout, first.requestTimeout])));
    first.listen(3000, () => {
      first.requestTimeout = 2345;
      first.close(() => app.listen(3001, () => first.listen(${port}, '127.0.0.1')));
    });`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: GIVEN });
  assert.match((await worker.said('warning')).text, new RegExp(`listens on 127\\.0\\.0\\.1:${port} directly`));
  assert.equal((await worker.said('listening')).port, 3001);
  assert.equal((await worker.get()).body, '1234,2345');
  assert.deepEqual(worker.tcpPorts(), [port]);
});

test('a port probe beside the app is not reported, and a port that stays is', async (t) => {
  const port = await freePort();
  const script = `const { createServer } = require('http');
    const probe = (then) => { const server = require('net').createServer().listen(0, () => server.close(then)); };
    const other = () => createServer().listen(${port}, '127.0.0.1', () => setImmediate(() => process.send('listens')));
    createServer().listen(3000, () => probe(() => probe(other)));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: GIVEN });
  await worker.saidByApp('listens');
  const warnings = worker.messages.filter(({ act }) => act === 'warning' || act === 'note');
  assert.deepEqual(warnings.map(({ text }) => text.match(/listens on (\S+) directly/)?.[1]), [`127.0.0.1:${port}`]);
});

test('an app that opens one server after the other, as for each client, is not reported without end', async (t) => {
  const script = `const net = require('net');
    const next = (left) => net.createServer().listen(0, '127.0.0.1', () => setImmediate(() => (left > 1 ? next(left - 1) : process.send('all listen'))));
    require('http').createServer().listen(3000, () => next(20));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: GIVEN });
  await worker.saidByApp('all listen');
  const told = worker.messages.filter(({ act }) => act === 'warning' || act === 'note').map(({ text }) => text);
  assert.equal(told.length, 16);
  assert.deepEqual(told.map((text) => text.endsWith('Hostler reports no further ports of this process.')), [...Array(15).fill(false), true]);
});
