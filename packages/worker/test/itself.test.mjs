// Requests of an app to itself, at its own PORT, which no TCP port serves.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { test } from 'node:test';
import { eventually, freePort } from '@hostler/testkit';

import { behindNode, startWorker } from './support/hostler.mjs';

const WAYS = ['fetch', 'http', 'socket'];

/** What the app gets from this URL. */
async function asked(worker, way, url) {
  return (await worker.get(`/?way=${way}&url=${encodeURIComponent(url)}`)).body;
}

for (const [position, command] of [['an app', ['node', 'server.cjs']], ['an app as a grandchild', behindNode('server.cjs')]]) {
  test(`${position} reaches itself at the PORT that Hostler has set, without a TCP port`, async (t) => {
    const worker = await startWorker(t, 'itself', command, { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
    for (const way of WAYS) {
      for (const host of ['localhost', '127.0.0.1', '[::1]']) {
        const seen = await asked(worker, way, `http://${host}:41000/own`);
        assert.equal(seen, `${way === 'fetch' ? 'POST' : 'GET'} from 127.0.0.1`, `${way} ${host}`);
      }
    }
    assert.deepEqual(worker.tcpPorts(), []);
  });
}

test('a connection of the app to another port goes there', async (t) => {
  const other = http.createServer((req, res) => res.end('other')).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const worker = await startWorker(t, 'itself', ['node', 'server.cjs'], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
  for (const way of WAYS) assert.equal(await asked(worker, way, `http://127.0.0.1:${other.address().port}/own`), 'other', way);
});

test('a PORT that the operator has set stays free for another program, such as Hostler itself', async (t) => {
  const port = await freePort();
  const worker = await startWorker(t, 'itself', ['node', 'server.cjs'], { env: { PORT: String(port) } });
  for (const way of WAYS) assert.equal(await asked(worker, way, `http://127.0.0.1:${port}/own`), 'ECONNREFUSED', way);
});

for (const where of ['port 0', 'a fixed port']) {
  test(`an app reaches its own plain TCP server on ${where}, such as a tunnel to its database, before it listens itself`, async (t) => {
    const script = `const tunnel = require('net').createServer((socket) => socket.end('through the tunnel'));
      tunnel.listen(${where === 'port 0' ? 0 : await freePort()}, '127.0.0.1', () => {
        const { port, address } = tunnel.address();
        require('net').connect(port, address).on('data', (text) => {
          require('http').createServer((req, res) => res.end(text)).listen(process.env.PORT);
        });
      });`;
    const worker = await startWorker(t, 'itself', ['node', '-e', script], { env: { PORT: '41000', HOSTLER_GIVEN_PORT: '41000' } });
    const listens = () => worker.messages.some(({ act, port }) => act === 'listening' && port === 41_000);
    await eventually('the app listens', listens, () => worker.output);
    assert.equal((await worker.get()).body, 'through the tunnel');
  });
}
