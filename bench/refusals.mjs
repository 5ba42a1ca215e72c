// node bench/refusals.mjs [OTHER] [--rounds N] [--seconds N] [--only WORD] measures the cost of a refusal: the member's one slot is
// taken, the queue is full, and every request that comes is refused with a 503. HAProxy and nginx stand beside Hostler. OTHER
// is the path of another build of Hostler, to compare with. Prints CPU per refused request, and writes no file.
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { get, untilAnswers } from './lib/http.mjs';
import { pace } from './lib/pace.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { inRounds } from './lib/rounds.mjs';
import { createSession, freePort } from './lib/session.mjs';
import { median, pairedRatio, summaryText } from './lib/statistics.mjs';
import { buildUpstream, hostlerBinary, installPackages, needTwoCores } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { hostler } from './peers/hostler.mjs';
import { opening } from './peers/nginx.mjs';
import { stopAll } from './peers/renders.mjs';

const [PROXY_CORE, LOAD_CORE] = [0, 1];
const CONNECTIONS = 50;
const READY = '/ready';
const PATH = '/rooms/48213';
/** Requests that stay unanswered: one has the slot, the other ones fill the queue. */
const HELD = 2;
const WARM_SECONDS = 1;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '2' }, only: { type: 'string', default: '' } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

needTwoCores('refusals', 'the proxy');
await installPackages(['wrk', 'haproxy', 'nginx']);
await buildUpstream();
const session = createSession();
process.on('exit', session.abandon);
const body = session.path('body.json');
writeFileSync(body, JSON.stringify({ text: 'x'.repeat(1000) }));

/** Each returns how many requests were refused. */
const LOADS = {
  'GET by wrk, as fast as possible': ({ port, seconds }) => byWrk({ port, seconds }),
  'POST of 1 KB by wrk, as fast as possible': ({ port, seconds }) => byWrk({ port, seconds, body }),
  'GET, 1000 a second at random times': (at) => byPace(at, 1000),
};
const PEERS = {
  hostler: (member) => startHostler(hostlerBinary(), member),
  ...(positionals[0] ? { other: (member) => startHostler(positionals[0], member) } : {}),
  haproxy: startHaproxy,
  nginx: startNginx,
};

try {
  const member = await startMember();
  const cells = Object.keys(LOADS).filter((name) => name.includes(values.only)).map((name) => ({ name }));
  const rows = await inRounds({ rounds, cells, peers: Object.keys(PEERS) }, (turn) => measure(member, turn));
  for (const { name } of cells) say(name, rows.filter((row) => row.cell === name));
} finally {
  await session.close();
}
process.exit(0); // the member still holds its connections

async function measure(member, { cell, peer }) {
  const running = await PEERS[peer](member);
  const held = await hold(running.port);
  const refusal = await get(running.port, PATH, { timeout: 2000, headers: { connection: 'keep-alive' } }).catch((error) => ({ status: error.message }));
  if (refusal.status !== 503) throw new Error(`${peer} did not refuse: ${refusal.status}`);
  const at = { port: running.port, cpu: LOAD_CORE };
  await LOADS[cell.name]({ ...at, seconds: WARM_SECONDS });
  const { cpu_ns, refused } = await cpuDuring(running.processes, () => LOADS[cell.name]({ ...at, seconds }));
  held.forEach((socket) => socket.destroy());
  await stopAll(session, running.processes);
  return { cell: cell.name, value: cpu_ns / refused / 1000, closes: refusal.headers.connection === 'close' };
}

async function byWrk({ port, seconds, body }) {
  const { requests, errors } = await wrk(session, { port, path: PATH, connections: CONNECTIONS, seconds, cpu: LOAD_CORE, body });
  const { status, ...others } = errors;
  if (status !== requests || Object.values(others).some((count) => count > 0)) throw new Error(`${requests} answers: ${JSON.stringify(errors)}`);
  return { refused: requests };
}

async function byPace({ port, seconds, cpu }, rate) {
  const { refused, ok, failed } = await pace(session, { port, path: PATH, rate, seconds, connections: CONNECTIONS, seed: 1, cpu });
  if (ok > 0 || failed > 0) throw new Error(`${refused} refused, ${ok} answered, ${failed} failed`);
  return { refused };
}

/** A member that answers only the first look at whether it is there, and keeps every other request. */
async function startMember() {
  const member = createServer((socket) => {
    socket.on('error', () => {}).on('data', (bytes) => {
      if (bytes.includes(` ${READY} `)) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  });
  const path = session.path('member.sock');
  await once(member.listen(path), 'listening');
  return path;
}

/** Sends the requests that take the slot and fill the queue. */
async function hold(port) {
  const sockets = [];
  while (sockets.length < HELD) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    await once(socket, 'connect');
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: bench.test\r\n\r\n`);
    sockets.push(socket);
    await pause(50);
  }
  return sockets;
}

async function startHostler(program, member) {
  process.env.HOSTLER_BIN = program;
  return hostler.start(session, { members: [member], slots: 1, cpu: PROXY_CORE, queueTimeout: '60s', queueLimit: HELD - 1, probe: READY });
}

async function startHaproxy(member) {
  const port = await freePort();
  const file = session.write('haproxy.cfg', `global
    nbthread 1
defaults
    mode http
    no log
    timeout connect 5s
    timeout queue 60s
    timeout client 60s
    timeout server 60s
frontend site
    bind 127.0.0.1:${port}
    http-request set-header X-Forwarded-Proto http
    http-request return status 503 content-type text/plain string "the queue is full" hdr Cache-Control no-store hdr Retry-After 1 if { queue(workers) ge ${HELD - 1} }
    default_backend workers
backend workers
    server worker1 unix@${member} maxconn 1
`);
  return started(port, session.start('haproxy', ['-db', '-f', file], { cpu: PROXY_CORE, name: 'haproxy' }));
}

async function startNginx(member) {
  const port = await freePort();
  const dir = session.path('nginx');
  mkdirSync(dir);
  const file = session.write('nginx.conf', `${process.getuid() === 0 ? 'user root;\n' : ''}${opening({ dir })}
    limit_conn_zone $server_port zone=all:1m;
    limit_conn_log_level info;
    server {
        listen 127.0.0.1:${port};
        location / {
            limit_conn all ${HELD};
            add_header Cache-Control no-store always;
            add_header Retry-After 1 always;
            proxy_pass http://unix:${member};
        }
    }
}
`);
  return started(port, session.start('nginx', ['-e', 'stderr', '-p', dir, '-c', file], { cpu: PROXY_CORE, name: 'nginx' }));
}

async function started(port, running) {
  await untilAnswers(port, { path: READY, processes: [running] });
  return { port, processes: [running] };
}

function say(name, rows) {
  console.log(`\n${name}: CPU per refused request`);
  for (const peer of Object.keys(PEERS)) {
    const of = rows.filter((row) => row.peer === peer).map((row) => row.value);
    const ratio = peer === 'hostler' ? '' : `; hostler / ${peer} ${summaryText(pairedRatio(rows, { one: 'hostler', other: peer, value: (row) => row.value }))}`;
    const closes = rows.some((row) => row.peer === peer && row.closes) ? ', closes the connection' : '';
    console.log(`  ${peer.padEnd(8)} ${median(of).toFixed(2)} us (${of.map((value) => value.toFixed(2)).join(', ')})${ratio}${closes}`);
  }
}
