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

/**
 * Runs `use` with twenty clients of the guide's own version, all connected, and closes them. Without the end of their polls Hostler
 * would wait for them when it stops; and a client that stays open connects again for ever, so this process would never end.
 */
async function withClients(app, site, options, use) {
  const { io } = createRequire(`${app}/server.js`)('socket.io-client');
  const clients = Array.from({ length: CLIENTS }, () => io(site.url, { forceNew: true, reconnectionDelay: 50, ...options }));
  try {
    await eventually('all clients to connect', () => clients.every((client) => client.connected));
    await use(clients);
  } catch (error) {
    const refused = site.log.filter((line) => !/"status":(200|101)\b/.test(line));
    throw new Error(`${error.message}. The log without its answers of 200 and 101:\n${refused.join('\n')}`, { cause: error });
  } finally {
    clients.forEach((client) => client.close());
  }
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
    await withClients(app, site, options, async (clients) => {
      assert.deepEqual([...new Set(await say(clients))].sort(), ['hello from worker 1', 'hello from worker 2']);
    });
  });
}

test('Socket.IO in a browser, and a deploy: all clients connect again', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'));
  await inBrowser(site, '/', (tab) => tab.getByText(/hello from worker \d/).waitFor());
  await withClients(app, site, {}, async (clients) => {
    let reasons = 0;
    clients.forEach((client) => client.on('disconnect', () => (reasons += 1)));
    await eventually('WebSockets', () => clients.every((client) => client.io.engine.transport.name === 'websocket'));
    await runCommands(guide.commands('Deploy'), { cwd: app, env: { HOSTLER_SERVER_ADMIN: new URL(site.admin).host } });
    await eventually('all clients to connect again', () => reasons >= CLIENTS && clients.every((client) => client.connected));
    assert.equal((await say(clients)).length, CLIENTS);
  });
});
