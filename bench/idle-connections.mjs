// node bench/idle-connections.mjs [BUILD ...] [--count N] [--kinds LIST] [--peers LIST] measures the memory of idle client
// connections: plain, TLS, h2 (over TLS) and h2c, before and after a first request, and what stays when all are closed. BUILD is a
// Hostler program; without one, it is HOSTLER_BIN or target/release/hostler. Writes no file.
import { once } from 'node:events';
import { connect as connectH2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { parseArgs } from 'node:util';

import { certificate } from './lib/certificate.mjs';
import { family, proportionalBytes, residentBytes } from './lib/procfs.mjs';
import { createSession } from './lib/session.mjs';
import { buildUpstream, hostlerBinary, installPackages } from './lib/tools.mjs';
import { haproxy } from './peers/haproxy.mjs';
import { hostler } from './peers/hostler.mjs';
import { startMembers } from './peers/members.mjs';
import { nginx } from './peers/nginx.mjs';
import { stopAll } from './peers/renders.mjs';

const [PROXY_CORE, LOAD_CORE, PROBE] = [0, 1, '/rooms/48213'];
/** Connections that are being opened at the same time. */
const AT_ONCE = 50;
/** Hostler frees the memory of a request a second after it, and the allocator returns it after another second. */
const SETTLE_MS = 6000;
const SECURE = { host: '127.0.0.1', servername: 'shop.example.com', rejectUnauthorized: false };

const KINDS = {
  plain: { tls: false, open: (port) => http1(connect({ port, host: '127.0.0.1' }), 'connect') },
  tls: { tls: true, open: (port) => http1(connectTls({ ...SECURE, port, ALPNProtocols: ['http/1.1'] }), 'secureConnect') },
  h2: { tls: true, open: (port) => http2(connectH2(`https://127.0.0.1:${port}`, SECURE)) },
  h2c: { tls: false, without: 'nginx', open: (port) => http2(connectH2(`http://127.0.0.1:${port}`)) },
};
const PEERS = { haproxy, nginx };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '3000' },
    kinds: { type: 'string', default: Object.keys(KINDS).join() },
    peers: { type: 'string', default: Object.keys(PEERS).join() },
  },
});
const count = Number(values.count);
const builds = positionals.length > 0 ? positionals : [hostlerBinary()];
const peers = values.peers.split(',').filter((name) => name in PEERS);

await installPackages(['openssl', ...peers.flatMap((name) => PEERS[name].packages)]);
await buildUpstream();
const session = createSession();
process.on('exit', session.abandon);
try {
  const upstream = await startMembers(session, { count: 4, cpu: LOAD_CORE, probe: PROBE });
  const pem = await certificate(session);
  console.log(`${count} connections; KB of each: opened, after one request; KB of the process: before, after all have closed; PSS after`);
  for (const kind of values.kinds.split(',')) {
    for (const build of builds) await measure(kind, build, hostler, upstream, pem, { HOSTLER_BIN: build });
    for (const name of peers.filter((peer) => KINDS[kind].without !== peer)) await measure(kind, name, PEERS[name], upstream, pem);
  }
} finally {
  await session.close();
}

async function measure(kind, title, peer, { members }, pem, env = {}) {
  const { tls, open } = KINDS[kind];
  Object.assign(process.env, env);
  const running = await peer.start(session, { members, slots: 64, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE, tls: tls ? pem : undefined });
  const pids = running.processes.flatMap(({ pid }) => family(pid));
  const resident = () => pids.map(residentBytes).reduce((sum, one) => sum + one, 0);
  await delay(SETTLE_MS / 2);
  const before = resident();
  const clients = [];
  while (clients.length < count) {
    const some = Math.min(AT_ONCE, count - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: some }, () => open(running.port)))));
    // A peer may allow less time for the first request than the other connections take to open.
    if (peer !== hostler) await Promise.all(clients.slice(-some).map((client) => client.ask()));
  }
  await delay(SETTLE_MS);
  const opened = resident();
  for (let at = 0; at < count; at += AT_ONCE) await Promise.all(clients.slice(at, at + AT_ONCE).map((client) => client.ask()));
  await delay(SETTLE_MS);
  const asked = resident();
  clients.forEach((client) => client.close());
  await delay(SETTLE_MS);
  const [closed, shared] = [resident(), proportionalBytes(pids)];
  const each = (bytes) => ((bytes - before) / count / 1000).toFixed(2);
  const all = (bytes) => (bytes / 1000).toFixed(0);
  const more = (100 * (closed / before - 1)).toFixed(0);
  console.log(`${kind.padEnd(6)} ${title}: opened ${each(opened)}, after a request ${each(asked)}; before ${all(before)}, after ${all(closed)} (+${more} %), PSS ${all(shared)}`);
  await stopAll(session, running.processes);
}

async function http1(socket, connected) {
  socket.on('error', () => {});
  await once(socket, connected);
  const ask = async () => {
    socket.write(`GET ${PROBE} HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0)\r\nAccept: text/html\r\nCookie: session=0123456789abcdef\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    if (!answer.toString().startsWith('HTTP/1.1 200')) throw new Error(`no answer: ${answer}`);
  };
  return { ask, close: () => socket.destroy() };
}

async function http2(client) {
  client.on('error', () => {});
  await once(client, 'remoteSettings');
  const ask = async () => {
    const stream = client.request({ ':path': PROBE, 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0)', accept: 'text/html', cookie: 'session=0123456789abcdef' });
    const [head] = await once(stream, 'response');
    if (head[':status'] !== 200) throw new Error(`no answer: ${head[':status']}`);
    await once(stream.resume(), 'end');
  };
  return { ask, close: () => client.destroy() };
}
