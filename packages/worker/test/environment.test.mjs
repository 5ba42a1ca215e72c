// Processes that the preload does not change: children of the app, processes on the way to the app, and processes that
// came too late.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { freePort } from '@hostler/testkit';

import { behindNode, startWorker, withoutPermissions } from './support/hostler.mjs';

for (const [position, command] of [['the app', ['node', 'server.mjs']], ['the app as a grandchild', behindNode('server.mjs')]]) {
  test(`a child process of ${position} listens on its own port and inherits nothing of Hostler`, async (t) => {
    const helperPort = await freePort();
    const nodeOptions = '--no-deprecation --title="a \\"worker\\""';
    const worker = await startWorker(t, 'child-process', command, { nodeOptions, env: { HELPER_PORT: String(helperPort), HOSTLER_POOL: 'web' } });

    const { body } = await worker.get();

    assert.equal(body.port, 3000);
    assert.equal(body.helper.address.port, helperPort);
    assert.equal(body.helper.nodeOptions, nodeOptions);
    assert.deepEqual(Object.keys(body.helper.env).filter((name) => name.startsWith('HOSTLER_')), ['HOSTLER_POOL']);
  });
}

test('NODE_OPTIONS with only the preload is removed for child processes', async (t) => {
  const worker = await startWorker(t, 'child-process', ['node', 'server.mjs'], { env: { HELPER_PORT: '0' } });
  const { body } = await worker.get();
  assert.equal('NODE_OPTIONS' in body.helper.env, false);
});

test('an app may replace process.env: its PORT counts, and its child processes inherit nothing of Hostler', async (t) => {
  const other = await freePort();
  const script = `const original = process.env;
    process.env = { ...process.env, PORT: '3000' };
    const { createServer } = require('http');
    createServer().listen(${other}, '127.0.0.1');
    createServer((request, response) => {
      const inherited = 'JSON.stringify(Object.keys(process.env).filter((name) => /^HOSTLER_|^NODE_OPTIONS$/.test(name)))';
      const env = request.url === '/original' ? original : undefined;
      response.end(require('child_process').execFileSync(process.execPath, ['-p', inherited], { encoding: 'utf8', env }));
    }).listen(process.env.PORT);`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', script], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  assert.equal((await worker.said('listening')).port, 3000);
  assert.equal((await worker.get()).body, '[]\n');
  assert.equal((await worker.get('/original')).body, '[]\n');
  assert.deepEqual(worker.tcpPorts(), [other]);
});

test('an app behind a program that passes on NODE_OPTIONS and no other variable of Hostler, as Turborepo does, is served', async (t) => {
  const filter = `const { PATH, NODE_OPTIONS } = process.env;
    require('child_process').spawn('sh', ['-c', 'node server.mjs; true'], { stdio: 'inherit', env: { PATH, NODE_OPTIONS } });`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', filter]);
  assert.equal((await worker.get()).body.port, 3000);
  assert.equal((await worker.said('listening')).via, 'path');
});

const fail = "() => { throw new Error('the environment is fixed'); }";
for (const [form, env, inherits] of [['a frozen copy', 'Object.freeze({ ...process.env })', false], ['a proxy without changes', `new Proxy({ ...process.env }, { set: ${fail}, deleteProperty: ${fail} })`, true]]) {
  test(`an app may put ${form} in the place of process.env`, async (t) => {
    const script = `process.env = ${env};
      const { createServer } = require('http');
      const app = createServer((request, response) => response.end(String('HOSTLER_LISTEN_PATH' in process.env)));
      const probe = createServer().listen(0, () => probe.close(() => app.listen(3000)));`;
    const worker = await startWorker(t, 'plain-http', ['node', '-e', script]);
    assert.equal((await worker.get()).body, String(inherits));
    assert.deepEqual(worker.tcpPorts(), []);
  });
}

test('an app may replace the timers, as fake timers do', async (t) => {
  const script = `globalThis.setImmediate = globalThis.setTimeout = () => {};
    require('http').createServer((request, response) => response.end('app')).listen(3000);`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', script]);
  assert.equal((await worker.get()).body, 'app');
});

test('a second process without the descriptor listens on its own port', async (t) => {
  const port = String(await freePort());
  const both = `for (const file of ['server.mjs', 'server.mjs'])
    require('child_process').spawn(process.execPath, [file, 'env'], { stdio: 'inherit' });`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', both], { env: { PORT: port } });

  await worker.get();
  await worker.printed(/listening on[^]*listening on/);

  assert.equal(worker.messages.filter(({ act }) => act === 'listening').length, 1);
  assert.deepEqual(worker.tcpPorts(), [Number(port)]);
});

test('an unrelated descriptor 3 is not used as the listening socket', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs'], { env: { HOSTLER_LISTEN_INODE: '1' } });
  const { via } = await worker.said('listening');
  assert.equal(via, 'path');
});

test('the claimed path is for its owner only', async (t) => {
  const worker = await startWorker(t, 'plain-http', behindNode('server.mjs'));
  await worker.said('listening');
  assert.equal(fs.statSync(path.join(worker.dir, 'web-1-7.app')).mode & 0o777, 0o600);
});

test('a worker thread that listens is left alone', async (t) => {
  const port = await freePort();
  const script = `new (require('worker_threads').Worker)('require("http").createServer().listen(${port}, () => console.log("thread listens"))', { eval: true });
    require('./server.cjs')`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script]);
  await worker.printed(/thread listens/);
  await worker.printed(new RegExp(`listens on \\*:${port} directly, .* because it listens in a worker thread`));
  assert.equal((await worker.get()).body.app, 'koa');
  assert.deepEqual(worker.tcpPorts(), [port]);
});

test('an app whose Hostler folder is gone listens by itself', async (t) => {
  const port = String(await freePort());
  const env = { PORT: port, HOSTLER_LISTEN_INODE: '1', HOSTLER_LISTEN_PATH: '/nowhere/web-1-7.app', HOSTLER_CONTROL_PATH: '/nowhere/web-1-7.ctl' };
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', 'env'], { env });
  await worker.printed(/listening on/);
  assert.deepEqual(worker.tcpPorts(), [Number(port)]);
});

test('an app under the permission model of Node, which may write no file, is served', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', ...withoutPermissions(), 'server.mjs']);
  assert.equal((await worker.get()).body.app, 'http');
  assert.deepEqual(worker.tcpPorts(), []);
});

test('without the variables of Hostler the preload changes nothing', () => {
  const preload = new URL('../preload.cjs', import.meta.url).pathname;
  const script = 'const { listen } = require("net").Server.prototype; console.log(listen.toString().includes("redirect"))';
  assert.equal(execFileSync(process.execPath, ['--require', preload, '-e', script], { encoding: 'utf8' }), 'false\n');
});
