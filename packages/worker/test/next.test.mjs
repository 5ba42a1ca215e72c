// A real Next.js app, built once into .cache, started in the ways that people start it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { before, test } from 'node:test';

import { startWorker } from './support/hostler.mjs';

const source = new URL('apps/next/', import.meta.url).pathname;
const cache = new URL('.cache/next/', import.meta.url).pathname;
const next = createRequire(import.meta.url).resolve('next/dist/bin/next');

before(buildOnce);

const starts = [
  { name: 'npx next start -p 3000', command: ['npx', 'next', 'start', '-p', '3000'], via: 'path' },
  { name: 'npm start', command: ['npm', 'start'], via: 'path' },
  { name: 'next start as the direct child', command: [next, 'start', '-p', '3000'], via: 'fd' },
];

for (const { name, command, via } of starts) {
  test(`Next.js by ${name} answers page and route over the socket and opens no TCP port`, async (t) => {
    const worker = await startWorker(t, 'next', command, { cwd: cache, env: { NODE_ENV: 'production' } });

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

/** A build takes a while: it is kept until the app or Next.js changes. */
function buildOnce() {
  const hash = createHash('sha256').update(fs.readFileSync(path.join(path.dirname(next), '../../package.json')));
  for (const file of fs.readdirSync(source, { recursive: true }).sort()) {
    if (fs.statSync(path.join(source, file)).isFile()) hash.update(file).update(fs.readFileSync(path.join(source, file)));
  }
  const stamp = path.join(cache, 'built-from');
  const key = hash.digest('hex');
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === key) return;

  fs.rmSync(cache, { recursive: true, force: true });
  fs.cpSync(source, cache, { recursive: true });
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' };
  delete env.NODE_TEST_CONTEXT;
  execFileSync(process.execPath, [next, 'build'], { cwd: cache, env, stdio: ['ignore', 'pipe', 'pipe'] });
  fs.writeFileSync(stamp, key);
}
