// Following Hostler through upgrades: no other process may be taken for a successor.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { after, test } from 'node:test';

import { successorOf } from './succession.mjs';

const status = createServer((req, res) => res.end(JSON.stringify({ pid: process.pid })));
await once(status.listen(0, '127.0.0.1'), 'listening');
const admin = `http://127.0.0.1:${status.address().port}`;
after(() => status.close());

test('the process that answers now has taken over', async () => {
  assert.equal(await successorOf(1, admin), process.pid);
});

test('a process that has ended has no successor if no other process answers', async () => {
  assert.equal(await successorOf(process.pid, admin), undefined);
  assert.equal(await successorOf(1, 'http://127.0.0.1:1'), undefined);
});

test('a process that could not start has no successor, although another one has its port', async () => {
  assert.equal(await successorOf(1, admin, 1), undefined);
  assert.equal(await successorOf(1, admin, null), process.pid, 'a signal has ended it, after an upgrade');
});
