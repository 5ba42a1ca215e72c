// The guide to Socket.IO, followed with its real server and client.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';

import { eventually } from '@hostler/testkit';

import { makeApp, runCommands } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { inBrowser, start } from '../support/site.mjs';

const guide = readPage('socket-io');
const CLIENTS = 20;

/** Twenty clients of the guide's own version, all connected. */
async function connect(app, site, options) {
  const { io } = createRequire(`${app}/server.js`)('socket.io-client');
  const clients = Array.from({ length: CLIENTS }, () => io(site.url, { forceNew: true, reconnectionDelay: 50, ...options }));
  await eventually('all clients to connect', () => clients.every((client) => client.connected));
  return clients;
}

/** Closes all clients, and waits for the end of their polls: Hostler would wait for them when it stops. */
async function close(site, clients) {
  clients.forEach((client) => client.close());
  await eventually('no request and no tunnel', async () => {
    const { pools } = await site.status();
    return pools[0].workers.every((worker) => worker.in_use === 0 && worker.tunnels === 0);
  });
}

const say = (clients) => Promise.all(clients.map((client) => client.timeout(10_000).emitWithAck('say', 'hello')));

for (const [name, options] of [['the default transports', {}], ['polling alone', { transports: ['polling'] }], ['WebSockets alone', { transports: ['websocket'] }]]) {
  test(`Socket.IO with ${name}: all clients of two workers are answered`, async (t) => {
    const app = await makeApp(guide);
    const site = await start(t, app, guide.file('hostler.toml'));
    const clients = await connect(app, site, options);

    assert.deepEqual([...new Set(await say(clients))].sort(), ['hello from worker 1', 'hello from worker 2']);
    await close(site, clients);
  });
}

test('Socket.IO in a browser, and a deploy: all clients connect again', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'));
  await inBrowser(site, '/', (tab) => tab.getByText(/hello from worker \d/).waitFor());
  const clients = await connect(app, site, {});

  let reasons = 0;
  clients.forEach((client) => client.on('disconnect', () => (reasons += 1)));
  await eventually('WebSockets', () => clients.every((client) => client.io.engine.transport.name === 'websocket'));
  await runCommands(guide.commands('Deploy'), { cwd: app, env: { HOSTLER_SERVER_ADMIN: new URL(site.admin).host } });
  await eventually('all clients to connect again', () => reasons >= CLIENTS && clients.every((client) => client.connected));
  assert.equal((await say(clients)).length, CLIENTS);
  await close(site, clients);
});
