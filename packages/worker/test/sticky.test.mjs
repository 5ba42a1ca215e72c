// Socket.IO with its default transports in front of several workers, with nothing set and behind other balancers.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, openBrowser, startHostler } from '@hostler/testkit';
import { io } from 'socket.io-client';

const APP = fileURLToPath(new URL('apps/socketio', import.meta.url));
const CLIENTS = 20;

const pool = (more = '') => `[pools.app]\ncommand = "node server.cjs"\ncwd = "${APP}"\nworkers = 2\n${more}`;

/** Connects a client of Node, which has no cookies, and waits until it uses a WebSocket. */
async function connected(url, options = {}) {
  const errors = [];
  const socket = io(url, { forceNew: true, reconnectionAttempts: 3, ...options });
  try {
    return await new Promise((resolve, reject) => {
      socket.on('connect_error', (error) => errors.push(error.message));
      socket.io.engine.on('upgradeError', (error) => reject(error));
      socket.io.on('reconnect_failed', () => reject(new Error(errors.join(', '))));
      socket.on('hello', (first) => {
        const finish = () => socket.emit('echo', 'x', (last) => resolve({ first, last, errors, transport: socket.io.engine.transport.name }));
        if (options.upgrade === false || socket.io.engine.transport.name === 'websocket') finish();
        else socket.io.engine.once('upgrade', finish);
      });
    });
  } finally {
    socket.close();
  }
}

/** All clients connect at once. Returns how many each worker has served. */
async function crowd(url, options) {
  // Each client has an address of its own, so that balancers tell them apart.
  const addresses = Array.from({ length: CLIENTS }, (_, index) => `127.0.1.${index + 1}`);
  const seen = await Promise.all(addresses.map((localAddress) => connected(url, { ...options, agent: new Agent({ keepAlive: true, localAddress }) })));
  const transport = options?.upgrade === false ? 'polling' : 'websocket';
  for (const each of seen) assert.deepEqual(each, { first: each.first, last: each.first, errors: [], transport });
  return counted(seen);
}

function counted(seen) {
  const counts = {};
  for (const { first } of seen) counts[first] = (counts[first] ?? 0) + 1;
  return Object.values(counts);
}

async function withHostler(config, use) {
  const site = await startHostler({ config });
  try {
    await use(site);
    // A client that only polls says good-bye with a request.
    await eventually('no request under way', async () => (await site.status()).pools[0].in_use === 0);
  } finally {
    await site.stop();
  }
}

test('Socket.IO: 20 of 20 clients of Node connect by polling and upgrade, with two workers and nothing set', async () => {
  await withHostler(pool(), async (site) => {
    const counts = await crowd(site.url);
    assert.equal(counts.length, 2, 'both workers have clients');
    const { pools } = await site.status();
    assert.deepEqual(pools[0].sticky.moved, { gone: 0, busy: 0 });
    assert.ok(pools[0].sticky.sessions >= CLIENTS);
  });
});

test('Socket.IO: 20 of 20 clients that only poll stay with their workers', async () => {
  await withHostler(pool(), (site) => crowd(site.url, { transports: ['polling'], upgrade: false }));
});

test('Socket.IO: 20 of 20 clients in a browser connect and upgrade, with nothing set and with a cookie', async () => {
  const browser = await openBrowser();
  try {
    for (const more of ['', 'sticky = "cookie"\n']) {
      await withHostler(pool(more), async (site) => {
        const seen = await Promise.all(Array.from({ length: CLIENTS }, () => inBrowser(browser, site.url)));
        for (const each of seen) assert.deepEqual(each.seen, { first: each.seen.first, last: each.seen.first, errors: [], transport: 'websocket' });
        assert.equal(counted(seen.map((each) => each.seen)).length, 2);
        const named = seen.map((each) => each.cookies.filter((cookie) => cookie.name === 'hostler_app'));
        for (const cookies of named) assert.equal(cookies.length, more ? 1 : 0);
        for (const [cookie] of named.filter((cookies) => cookies.length)) {
          assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Lax', '/']);
        }
      });
    }
  } finally {
    await browser.close();
  }
});

async function inBrowser(browser, url) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(url);
    return { seen: await page.evaluate('window.seen'), cookies: await context.cookies() };
  } finally {
    await context.close();
  }
}

/** The settings of docs/guide/sticky.md that keep a client with one Hostler. */
const BALANCERS = {
  nginx: {
    program: '/usr/sbin/nginx',
    args: (file, folder) => ['-c', file, '-p', folder, '-g', 'daemon off;'],
    text: (port, [one, two], folder) => `worker_processes 1;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream hostlers {
    hash $remote_addr consistent;
    server 127.0.0.1:${one};
    server 127.0.0.1:${two};
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://hostlers;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }
  }
}
`,
  },
  haproxy: {
    program: '/usr/sbin/haproxy',
    args: (file) => ['-db', '-f', file],
    text: (port, [one, two]) => `defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  timeout tunnel 1h
frontend web
  bind 127.0.0.1:${port}
  option forwardfor
  default_backend hostlers
backend hostlers
  balance source
  hash-type consistent
  cookie hostler_at insert indirect nocache httponly
  server one 127.0.0.1:${one} cookie one
  server two 127.0.0.1:${two} cookie two
`,
  },
};

for (const [name, balancer] of Object.entries(BALANCERS)) {
  const skip = existsSync(balancer.program) ? false : `${balancer.program} is missing`;
  test(`Socket.IO: 20 of 20 clients connect through ${name} to two Hostlers`, { skip }, async () => {
    const ports = [await freePort(), await freePort()];
    const folder = await mkdtemp(join(tmpdir(), 'hostler-balancer-'));
    const trusted = '[server]\ntrusted_proxies = ["127.0.0.1"]\n';
    const sites = await Promise.all(ports.map((port) => startHostler({ config: trusted + pool('sticky = "cookie"\n'), listen: `127.0.0.1:${port}` })));
    const port = await freePort();
    const file = join(folder, 'balancer.conf');
    await writeFile(file, balancer.text(port, ports, folder));
    const child = spawn(balancer.program, balancer.args(file, folder), { stdio: 'inherit' });
    const ended = once(child, 'exit');
    try {
      await eventually(`${name} to listen`, () => answers(port));
      const url = `http://127.0.0.1:${port}`;
      const counts = await crowd(url);
      assert.ok(counts.length > 2, `both Hostlers have clients: ${counts}`);
      await crowd(url, { transports: ['polling'], upgrade: false });
      const browser = await openBrowser();
      try {
        const seen = await Promise.all(Array.from({ length: 5 }, () => inBrowser(browser, url)));
        for (const each of seen) assert.deepEqual(each.seen, { first: each.seen.first, last: each.seen.first, errors: [], transport: 'websocket' });
      } finally {
        await browser.close();
      }
      await aForeignCookieMoves(sites);
    } finally {
      child.kill('SIGTERM');
      await ended;
      await Promise.all(sites.map((site) => site.stop()));
      await rm(folder, { recursive: true });
    }
  });
}

/** The cookie of one Hostler means nothing to another one with workers of its own. */
async function aForeignCookieMoves([one, two]) {
  const [cookie] = (await fetch(`${one.url}/who`)).headers.getSetCookie();
  const headers = { cookie: cookie.split(';')[0] };
  const [first, second] = await Promise.all([1, 2].map(async () => (await fetch(`${one.url}/who`, { headers })).json()));
  assert.equal(first.pid, second.pid);
  assert.equal(first.headers['x-hostler-moved'], undefined);
  const answer = await fetch(`${two.url}/who`, { headers: { ...headers, 'x-hostler-moved': 'nonsense' } });
  assert.equal((await answer.json()).headers['x-hostler-moved'], 'gone');
  assert.equal(answer.headers.getSetCookie().length, 1);
}

async function answers(port) {
  const socket = connect(port, '127.0.0.1');
  const open = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(() => false);
  socket.destroy();
  return open;
}
