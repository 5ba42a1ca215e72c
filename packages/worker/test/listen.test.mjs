// Which listen() is the app's, its possible forms, and what happens to the others.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { eventually, freePort } from '@hostler/testkit';

import { behindNode, startWorker } from './support/hostler.mjs';

const forms = [
  { form: 'number', shown: { address: '127.0.0.1', family: 'IPv4', port: 3000 } },
  { form: 'string', shown: { address: '127.0.0.1', family: 'IPv4', port: 3000 } },
  { form: 'options', shown: { address: '127.0.0.1', family: 'IPv4', port: 3000 } },
  { form: 'host', shown: { address: '::1', family: 'IPv6', port: 3000 } },
  { form: 'env', shown: { address: '127.0.0.1', family: 'IPv4', port: 3000 }, env: { PORT: '3000' } },
];

for (const { form, shown, env } of forms) {
  test(`listen() written as "${form}" is redirected, and address() shows the requested address`, async (t) => {
    const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', form], { env });
    const { port } = await worker.said('listening');
    const { body } = await worker.get();

    assert.equal(port, 3000);
    assert.deepEqual({ address: body.address, family: body.family, port: body.port }, shown);
    assert.equal(body.localPort, 3000);
    assert.deepEqual(worker.tcpPorts(), []);
  });
}

for (const form of ['random', 'none']) {
  test(`listen() without a port (${form}) is redirected, and address() has a port that can be printed`, async (t) => {
    const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', form]);
    const { port } = await worker.said('listening');
    const { body } = await worker.get();

    assert.equal(port, 0);
    assert.ok(body.port >= 1024 && body.port <= 65_535);
    assert.deepEqual(worker.tcpPorts(), []);
  });
}

for (const [name, why] of [['HOSTLER_APP_PORT', "the pool's port is 3000"], ['PORT', 'the variable PORT is 3000']]) {
  test(`with ${name}, a metrics port that opens first stays a TCP port of the app`, async (t) => {
    const metrics = await freePort();
    const env = { METRICS_PORT: String(metrics), [name]: '3000' };
    const worker = await startWorker(t, 'metrics-first', ['node', 'server.mjs'], { env });

    const { body } = await worker.get();
    const { text } = await worker.said('warning');

    assert.equal(body.app, 'metrics-first');
    assert.equal(body.port, 3000);
    assert.deepEqual(worker.tcpPorts(), [metrics]);
    assert.equal(await getTcp(metrics), 'requests_total 0\n');
    assert.match(text, new RegExp(`listens on \\*:${metrics} directly, .*because ${why}\\. Other machines can reach it.*--port ${metrics}`));
  });
}

test('without a hint the first TCP listen is the app, and a later one on another port is left alone', async (t) => {
  const second = await freePort();
  const worker = await startWorker(t, 'metrics-first', ['node', 'server.mjs'], { env: { METRICS_PORT: '9464', APP_PORT: String(second) } });
  const { port } = await worker.said('listening');

  assert.equal(port, 9464);
  assert.equal((await worker.get()).body, 'requests_total 0\n');
  assert.deepEqual(worker.tcpPorts(), [second]);
  assert.match((await worker.said('warning')).text, new RegExp(`listens on \\*:${second} directly, .* because Hostler uses its server on port 9464\\. Other machines`));
});

for (const [position, command] of [['the app', ['node', 'server.mjs']], ['the app as a grandchild', behindNode('server.mjs')]]) {
  test(`with a PORT that Hostler has set, a metrics port of ${position} that opens first gives way`, async (t) => {
    const metrics = await freePort();
    const env = { METRICS_PORT: String(metrics), PORT: '41000', HOSTLER_GIVEN_PORT: '41000' };
    const worker = await startWorker(t, 'metrics-first', command, { env });
    await listensOn(worker, 41_000);

    const { body } = await worker.get();
    assert.deepEqual([body.app, body.port], ['metrics-first', 41_000]);
    assert.equal(await getTcp(metrics), 'requests_total 0\n');
    assert.deepEqual(worker.tcpPorts(), [metrics]);
    assert.match((await worker.said('warning')).text, new RegExp(`listens on \\*:${metrics} directly, .* because Hostler uses its server on PORT \\(41000\\)`));
  });
}

test('with a PORT that Hostler has set, an app that does not read it is served all the same', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs'], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  assert.equal((await worker.get()).body.port, 3000);
  assert.deepEqual(worker.tcpPorts(), []);
});

test('a metrics server in the same turn as the app is never reported as the app, and a later port on loopback is a note', async (t) => {
  const [metrics, admin] = [await freePort(), await freePort()];
  const script = `const server = (text) => require('http').createServer((request, response) => response.end(text));
    server('metrics').listen(${metrics}, '127.0.0.1');
    server('app').listen(process.env.PORT, () => server('admin').listen(${admin}, '127.0.0.1'));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });

  await worker.saidTimes('note', 2);
  assert.equal((await worker.get()).body, 'app');
  assert.deepEqual([await getTcp(metrics), await getTcp(admin)], ['metrics', 'admin']);
  assert.deepEqual(worker.messages.filter(({ act }) => act === 'listening').map(({ nth }) => nth), [2]);
  assert.deepEqual(worker.messages.filter(({ act }) => act === 'warning'), []);
});

test('an app that listens on PORT in a worker thread is served from there', async (t) => {
  const script = `const { Worker } = require('worker_threads');
    new Worker('require("http").createServer((request, response) => response.end("thread")).listen(process.env.PORT)', { eval: true });
    setInterval(() => {}, 1000);`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  const { pid, thread, tid } = await worker.said('listening');
  assert.equal(thread, true);
  if (process.platform === 'linux') assert.ok(tid !== pid && fs.existsSync(`/proc/${pid}/task/${tid}`), `thread ${tid} of ${pid}`);
  assert.equal((await worker.get()).body, 'thread');
  assert.deepEqual(worker.tcpPorts(), []);
  worker.send({ cmd: 'NODE_HOSTLER', act: 'report' });
  assert.ok(Number.isInteger((await worker.said('report')).active));
});

test('an app that listens on another port than the pool names is not claimed, and Hostler is told why', async (t) => {
  const port = await freePort();
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', 'env'], { env: { PORT: String(port), HOSTLER_APP_PORT: '3001' } });

  const { text } = await worker.said('warning');
  await worker.printed(/listening on/);

  assert.match(text, new RegExp(`:${port} directly, .*the pool's port is 3001`));
  assert.deepEqual(worker.tcpPorts(), [port]);
  assert.deepEqual(worker.messages.map(({ act }) => act), ['warning']);
});

test('a TLS server is skipped with a warning, and the plain server beside it is the app', async (t) => {
  const tlsPort = await freePort();
  const worker = await startWorker(t, 'tls', ['node', 'server.mjs'], { env: { TLS_PORT: String(tlsPort) } });

  const { text } = await worker.said('warning');
  const { body } = await worker.get();

  assert.match(text, new RegExp(`port ${tlsPort} with TLS`));
  assert.equal(body.port, 3000);
  assert.deepEqual(worker.tcpPorts(), [tlsPort]);
});

test('a server with HTTP/2 only is skipped with a warning', async (t) => {
  const port = await freePort();
  const script = `require('http2').createServer().listen(${port}, () => console.log('listens'))`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script]);

  const { text } = await worker.said('warning');
  await worker.printed(/listens/);

  assert.match(text, /HTTP\/2 only/);
  assert.equal((await worker.said('warning')).unused, true, 'it explains why the worker does not get ready');
  assert.deepEqual(worker.tcpPorts(), [port]);
});

test('a second listen on the same port, for another address, succeeds and opens no TCP port', async (t) => {
  const worker = await startWorker(t, 'two-addresses', ['node', 'server.mjs']);
  await worker.printed(/both listen/);
  const { body } = await worker.get();

  assert.deepEqual(body.addresses, [
    { address: '127.0.0.1', family: 'IPv4', port: 3000 },
    { address: '::1', family: 'IPv6', port: 3000 },
  ]);
  assert.deepEqual(worker.tcpPorts(), []);
});

for (const [position, command] of [['the app', (script) => ['node', '-e', script]], ['a grandchild', (script) => ['node', '-e', `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(script)}], { stdio: 'inherit' })`]]]) {
  test(`${position} whose server closes while connections stay open reports it at once`, async (t) => {
    const script = `const server = require('http').createServer((req) => req.url === '/close' && server.close()).listen(3000)`;
    const worker = await startWorker(t, 'koa', command(script));
    const { pid } = await worker.said('listening');
    worker.get('/close').catch(() => {}); // it stays without an answer until the worker ends

    assert.deepEqual(await worker.said('closed'), { cmd: 'NODE_HOSTLER', act: 'closed', pid });
  });
}

const GIVEN = { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' };
const positions = [['the app', (script) => ['node', '-e', script]], ['a grandchild', (script) => ['node', '-e', `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(script)}], { stdio: 'inherit' })`]]];

/** A script's `server(text)` answers with the text, its `tcp(text)` sends it and closes, and its `whenTold` waits for `go` of {@link waits}. */
const SERVERS = `const server = (text) => require('http').createServer((request, response) => response.end(text));
  const tcp = (text) => require('net').createServer((socket) => socket.end(text));
  const whenTold = (then) => {
    const look = setInterval(() => {
      if (!require('fs').existsSync(process.env.GO)) return;
      clearInterval(look);
      then();
    }, 5);
  };`;

function waits(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'go-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const GO = path.join(folder, 'go');
  return { GO, go: () => fs.writeFileSync(GO, '') };
}

for (const [position, command] of positions) {
  for (const [kind, port] of [['a port probe', 'process.env.PROBE'], ['a search for a free port', '0']]) {
    test(`after ${kind} of ${position}, the next listen is the app, on a fixed port`, async (t) => {
      const script = `${SERVERS} const probe = tcp().listen(${port}, () => probe.close(() => server('app').listen(3000)));`;
      const worker = await startWorker(t, 'koa', command(script), { env: { ...GIVEN, PROBE: String(await freePort()) } });
      await listensOn(worker, 3000);

      assert.equal((await worker.get()).body, 'app');
      assert.deepEqual(worker.tcpPorts(), []);
      assert.deepEqual(worker.messages.map(({ act, port }) => [act, port]), [['listening', 3000]]);
    });

    test(`after ${kind} of ${position}, the listen on PORT is the app, and the probe's port stays closed`, async (t) => {
      const script = `${SERVERS} const probe = tcp().listen(${port}, () => probe.close(() => server('app').listen(process.env.PORT)));`;
      const worker = await startWorker(t, 'koa', command(script), { env: { ...GIVEN, PROBE: String(await freePort()) } });
      await listensOn(worker, 41_000);

      assert.equal((await worker.get()).body, 'app');
      assert.deepEqual(worker.tcpPorts(), []);
      assert.deepEqual(worker.messages.map(({ act }) => act), ['listening'], 'it warns of nothing');
    });
  }

  test(`a server of ${position} that was closed after a while gives way to a listen on another port`, async (t) => {
    const script = `${SERVERS} const first = server('first').listen(3000);
      whenTold(() => first.close(() => server('app').listen(3001)));`;
    const { GO, go } = waits(t);
    const worker = await startWorker(t, 'koa', command(script), { env: { ...GIVEN, GO } });
    await listensOn(worker, 3000);
    go();
    await listensOn(worker, 3001);

    assert.equal((await worker.get()).body, 'app');
    assert.deepEqual(worker.messages.map(({ act }) => act), ['listening', 'closed', 'listening']);
  });

  for (const [kind, opened] of [['a plain TCP server', "tcp('other').listen(Number(process.env.OTHER), '127.0.0.1')"], ['a server on port 0', "server('other').listen(0, '127.0.0.1')"]]) {
    test(`${kind} of ${position} gives way to a later HTTP server on a fixed port`, async (t) => {
      const script = `${SERVERS} const other = ${opened};
        other.on('listening', () => console.log('other on', other.address().port));
        whenTold(() => server('app').listen(3000));`;
      const { GO, go } = waits(t);
      const worker = await startWorker(t, 'koa', command(script), { env: { ...GIVEN, GO, OTHER: String(await freePort()) } });
      const [, port] = await worker.printed(/other on (\d+)/);
      await worker.said('listening');
      go();
      await listensOn(worker, 3000);

      assert.equal((await worker.get()).body, 'app');
      assert.deepEqual(worker.tcpPorts(), [Number(port)]);
      assert.equal(await (kind === 'a plain TCP server' ? readTcp(port) : getTcp(port)), 'other');
      assert.match((await worker.said('note')).text, new RegExp(`listens on 127\\.0\\.0\\.1:${port} directly, .* because Hostler uses its server on port 3000`));
      assert.deepEqual(worker.messages.filter(({ act }) => act === 'warning'), []);
    });
  }

  test(`a plain TCP server that is all of ${position} is served`, async (t) => {
    const script = `require('net').createServer((socket) => socket.on('data', () => socket.end('HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\napp'))).listen(3000)`;
    const worker = await startWorker(t, 'koa', command(script), { env: GIVEN });
    assert.equal((await worker.get()).body, 'app');
    assert.deepEqual(worker.tcpPorts(), []);
  });
}

test('an app that looks for several free ports gets different ones', async (t) => {
  const script = `${SERVERS} const search = (then) => { const probe = tcp().listen(0, () => { const { port } = probe.address(); probe.close(() => then(port)); }); };
    search((one) => search((two) => server(one === two ? 'same' : 'different').listen(process.env.PORT)));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: GIVEN });
  await listensOn(worker, 41_000);
  assert.equal((await worker.get()).body, 'different');
});

test('with a port of the pool, a closed server gives way only to a listen on that port', async (t) => {
  const port = await freePort();
  const script = `${SERVERS} const probe = server().listen(3000, () => probe.close(() => server('other').listen(${port}, '127.0.0.1', () => server('app').listen(3000))));`;
  const worker = await startWorker(t, 'koa', ['node', '-e', script], { env: { HOSTLER_APP_PORT: '3000', PORT: '3000' } });
  await listensOn(worker, 3000);
  assert.equal((await worker.get()).body, 'app');
  assert.deepEqual(worker.tcpPorts(), [port]);
});

test('a process that probes a port and then starts the app leaves it the place', async (t) => {
  const script = `${SERVERS} const probe = tcp().listen(0, () => probe.close(() =>
    require('child_process').spawn(process.execPath, ['server.mjs'], { stdio: 'inherit' })));`;
  const worker = await startWorker(t, 'plain-http', ['node', '-e', script], { env: GIVEN });
  assert.equal((await worker.get()).body.port, 3000);
  assert.deepEqual(worker.tcpPorts(), []);
});

/** An app that starts a helper, which listens on `HELPER`, and listens itself when it is told. */
const WITH_HELPER = `${SERVERS}
  const { spawn } = require('child_process');
  if (process.env.IS_HELPER) {
    server('helper').listen(process.env.HELPER, '127.0.0.1');
  } else {
    spawn(process.execPath, ['-e', process.env.APP], { stdio: 'inherit', env: { ...process.env, IS_HELPER: '1' } });
    whenTold(() => server('app').listen(process.env.APP_PORT ?? process.env.PORT));
  }`;

for (const [on, more] of [['PORT', {}], ['a fixed port', { APP_PORT: '3000' }]]) {
  for (const [position, command] of [['the app', ['node', '-e', WITH_HELPER]], ['the app as a grandchild', ['node', '-e', `require('child_process').spawn(process.execPath, ['-e', process.env.APP], { stdio: 'inherit' })`]]]) {
    test(`a helper process that ${position} has started gives way when the app listens on ${on}, and gets its own port`, async (t) => {
      const helperPort = await freePort();
      const { GO, go } = waits(t);
      const worker = await startWorker(t, 'koa', command, { env: { ...GIVEN, GO, APP: WITH_HELPER, HELPER: String(helperPort), ...more } });
      const helper = await listensOn(worker, helperPort);
      assert.equal(helper.helper, true);
      go();
      const app = await listensOn(worker, Number(more.APP_PORT ?? 41_000));
      assert.deepEqual([app.nth, app.pid === helper.pid], [2, false]);
      assert.equal((await worker.get()).body, 'app');

      worker.sendTo(helper.pid, { cmd: 'NODE_HOSTLER', act: 'yield', nth: app.nth, pid: app.pid, port: app.port });
      const { text } = await worker.said('warning');
      assert.match(text, new RegExp(`^process ${helper.pid} listened on port ${helperPort} before process ${app.pid} listened on port ${app.port}, .*${helper.pid} listens on 127\\.0\\.0\\.1:${helperPort} directly\\. `));
      assert.match(text, more.APP_PORT ? /set the app's port: --port 3000, or port = 3000 of the pool\.$/ : /set the app's port: --port, or port of the pool\.$/);
      assert.equal(await getTcp(helperPort), 'helper');
      assert.deepEqual(worker.tcpPorts(), [helperPort]);
    });
  }
}

test('of two processes that share the descriptor, only one listens on it', async (t) => {
  const other = await freePort();
  const script = `${SERVERS} server('other').listen(process.env.OTHER, '127.0.0.1', () => console.log('listens'))`;
  const app = `${SERVERS} whenTold(() => server('app').listen(process.env.PORT))`;
  const { GO, go } = waits(t);
  const command = ['sh', '-c', 'node -e "$OTHER_SCRIPT" & node -e "$APP"'];
  const worker = await startWorker(t, 'koa', command, { env: { ...GIVEN, GO, OTHER: String(other), OTHER_SCRIPT: script, APP: app } });
  await listensOn(worker, other);
  go();
  await listensOn(worker, 41_000);
  for (let i = 0; i < 5; i += 1) assert.equal((await worker.get()).body, 'app');
});

test('a server that closes and opens again is found on the path', async (t) => {
  const worker = await startWorker(t, 'reopen', ['node', 'server.mjs']);
  await worker.get('/reopen');
  await worker.saidTimes('listening', 2);

  const { body } = await worker.get();

  assert.deepEqual(worker.messages.map(({ act, via }) => via ?? act), ['fd', 'closed', 'path']);
  assert.equal(body.port, 3000);
  assert.deepEqual(worker.tcpPorts(), []);
});

for (const listen of ['listen(80)', "listen(80, '127.0.0.1', 8)", 'listen({ port: 80, backlog: 8 })']) {
  test(`while the app of ${listen} is busy, Hostler can connect for each of many slots`, async (t) => {
    const worker = await startWorker(t, 'plain-http', ['node', '-e', `require('http').createServer().${listen}`]);
    const { socketPath } = await worker.address();
    process.kill(worker.child.pid, 'SIGSTOP');

    const sockets = Array.from({ length: 600 }, () => net.connect(socketPath));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    sockets.forEach((socket) => socket.destroy());
  });
}

test('an error in the app\'s listen() reaches the app', async (t) => {
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', 'env'], { env: { PORT: '70000' } });
  const { code } = await worker.ended();
  assert.equal(code, 1);
  assert.match(worker.output, /ERR_SOCKET_BAD_PORT/);
});

test('an app that listens on a Unix socket of its own is left alone', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'own-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const env = { PORT: path.join(folder, 'own.sock') };
  const worker = await startWorker(t, 'plain-http', ['node', 'server.mjs', 'env'], { env });
  await worker.printed(/listening on ".*own\.sock"/);
  const text = `the app listens on the path ${env.PORT}; let it listen on a port`;
  assert.deepEqual(worker.messages, [{ cmd: 'NODE_HOSTLER', act: 'note', text, unused: true }]);
});

async function listensOn(worker, wanted) {
  const isIt = ({ act, port }) => act === 'listening' && port === wanted;
  return eventually(`the worker listens on ${wanted}`, () => worker.messages.find(isIt), () => worker.output);
}

async function readTcp(port) {
  let text = '';
  for await (const piece of net.connect(port, '127.0.0.1').setEncoding('utf8')) text += piece;
  return text;
}

function getTcp(port) {
  return new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', agent: false }, async (response) => {
      let body = '';
      for await (const chunk of response.setEncoding('utf8')) body += chunk;
      resolve(body);
    }).on('error', reject);
  });
}
