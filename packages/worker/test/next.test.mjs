// A real Next.js app, built once into .cache, started in all usual ways.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { startWorker } from './support/hostler.mjs';
import { buildOnce, folder } from './support/next-app.mjs';

before(buildOnce);

// A symbolic link, as npm makes it.
const next = new URL('../../../node_modules/.bin/next', import.meta.url).pathname;

const starts = [
  { name: 'npx next start -p 3000', command: ['npx', 'next', 'start', '-p', '3000'], via: 'path' },
  { name: 'npm start', command: ['npm', 'start'], via: 'path' },
  { name: 'node_modules/.bin/next start', command: [next, 'start', '-p', '3000'], via: 'fd' },
];

for (const { name, command, via } of starts) {
  test(`Next.js by ${name} answers page and route over the socket and opens no TCP port`, async (t) => {
    const worker = await startWorker(t, 'next', command, { cwd: folder, env: { NODE_ENV: 'production' } });

    const listening = await worker.said('listening');
    const page = await worker.get('/', { headers: { host: 'shop.example' } });
    const route = await worker.get('/api/who', { headers: { 'x-forwarded-for': '8.8.8.8' } });

    assert.deepEqual({ via: listening.via, port: listening.port }, { via, port: 3000 });
    assert.equal(page.status, 200);
    assert.match(page.body, /<h1>Hello from Next\.js at (<!-- -->)?shop\.example<\/h1>/);
    assert.deepEqual(route.body, { app: 'next', ip: '8.8.8.8', port: 3000 });
    assert.deepEqual(worker.tcpPorts(), []);
  });
}
