// node bench/bodies.mjs OLD NEW [--rounds N] [--seconds N] [--only CELL,...] [--peers PEER,...] measures large bodies: two builds of Hostler, nginx and
// HAProxy take turns with downloads through the proxy, uploads, and files. Then small requests beside large downloads. OLD and NEW are
// paths of release builds. Prints the CPU per gigabyte and the times, and writes no file.
import { mkdirSync, openSync, closeSync, ftruncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { untilAnswers } from './lib/http.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { inRounds } from './lib/rounds.mjs';
import { createSession, freePort } from './lib/session.mjs';
import { median, pairedRatio, summaryText } from './lib/statistics.mjs';
import { installPackages, needTwoCores } from './lib/tools.mjs';
import { parseWrk, wrk } from './lib/wrk.mjs';
import { haproxy } from './peers/haproxy.mjs';
import { launch } from './peers/hostler.mjs';
import { configuration as nginxConfiguration, opening } from './peers/nginx.mjs';
import { stopAll } from './peers/renders.mjs';

const [PROXY_CORE, LOAD_CORE] = [0, 1];
const MEMBERS = 4;
const SIZES = { '1k': 1000, '4k': 4000, '20k': 20_000, '100k': 100_000, '1m': 1_000_000, '100m': 100_000_000 };
const PROBE = '/1k';
const WARM_SECONDS = 0.3;

/** `size`: of each body. `files`: the peers send files themselves, without members. */
const CELLS = {
  'download-1m': { title: 'download of 1 MB', path: '/1m', connections: 8 },
  'download-100m': { title: 'download of 100 MB', path: '/100m', connections: 4 },
  'file-4k': { title: 'file of 4 KB', path: '/4k', connections: 16, files: true },
  'file-20k': { title: 'file of 20 KB', path: '/20k', connections: 16, files: true },
  'file-100k': { title: 'file of 100 KB', path: '/100k', connections: 16, files: true },
  'file-100m': { title: 'file of 100 MB', path: '/100m', connections: 4, files: true },
  'upload-1m': { title: 'upload of 1 MB', path: '/up', connections: 4, upload: '1m' },
};
/** How many large downloads run beside small requests. */
const BESIDE = { 'beside-0': 0, 'beside-1': 1, 'beside-4': 4 };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '4' }, seconds: { type: 'string', default: '1' }, only: { type: 'string' }, peers: { type: 'string', default: 'old,new,nginx,haproxy' } },
});
if (positionals.length !== 2) {
  console.error('usage: node bench/bodies.mjs OLD NEW [--rounds N] [--seconds N] [--only CELL,...] [--peers PEER,...]');
  process.exit(2);
}
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const wanted = values.only?.split(',') ?? [...Object.keys(CELLS), ...Object.keys(BESIDE)];

const among = values.peers.split(',');

needTwoCores('bodies', 'the proxy');
await installPackages(['wrk', 'nginx', 'haproxy']);
const session = createSession();
process.on('exit', session.abandon);
try {
  const dir = writeFiles();
  const members = await startMembers(dir);
  const peers = {
    old: (files) => startHostler(positionals[0], { dir, members, files }),
    new: (files) => startHostler(positionals[1], { dir, members, files }),
    nginx: (files) => startNginx({ dir, members, files }),
    haproxy: () => haproxy.start(session, { members, slots: 64, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE }),
  };
  for (const cell of wanted.filter((name) => name in CELLS).map((name) => CELLS[name])) {
    const rows = await inTurns(peers, among.filter((name) => !cell.files || name !== 'haproxy'), cell.files, (running) => transfer(running, cell, dir));
    say(`${cell.title}: CPU per GB`, rows, 'ms');
  }
  for (const large of wanted.filter((name) => name in BESIDE).map((name) => BESIDE[name])) {
    const rows = await inTurns(peers, among, false, (running) => besides(running, large));
    say(`small requests beside ${large} downloads: p99`, rows, 'ms');
  }
} finally {
  await session.close();
}

/** The peers in turn, a new process each time. */
function inTurns(peers, names, files, measure) {
  return inRounds({ rounds, peers: names }, async ({ peer }) => {
    const running = await peers[peer](files);
    const row = await measure(running);
    await stopAll(session, running.processes);
    return row;
  });
}

async function transfer({ port, processes }, { path, connections, upload }, dir) {
  const at = { port, path, connections, cpu: LOAD_CORE, ...(upload ? { body: join(dir, upload) } : {}) };
  await wrk(session, { ...at, seconds: 1 });
  const { cpu_ns, requests, bytes, errors } = await cpuDuring(processes, () => wrk(session, { ...at, seconds }));
  if (Object.values(errors).some((count) => count > 0)) throw new Error(`errors: ${JSON.stringify(errors)}`);
  return { value: cpu_ns / 1e6 / ((upload ? requests * SIZES[upload] : bytes) / 1e9) };
}

/** The load of small requests runs first whenever it can, so that its own core adds little to their times. */
async function besides({ port }, large) {
  const url = `http://127.0.0.1:${port}`;
  const total = seconds + 2 * WARM_SECONDS + 1;
  const args = ['-t1', `-c${large}`, `-d${Math.ceil(total)}s`, '--timeout', '60s', `${url}/100m`];
  const loading = large > 0 ? session.begin('wrk', args, { cpu: LOAD_CORE }) : null;
  await delay(WARM_SECONDS * 1000);
  const script = new URL('lib/wrk.lua', import.meta.url).pathname;
  const small = ['-n', '-20', 'wrk', '-t1', '-c4', `-d${seconds}s`, '--latency', '-s', script, `${url}${PROBE}`];
  const { p99_us } = parseWrk(await session.run('nice', small, { cpu: LOAD_CORE }));
  if (loading) await session.stop(loading.started);
  return { value: p99_us / 1000 };
}

function writeFiles() {
  const dir = session.path('files');
  mkdirSync(dir);
  for (const [name, size] of Object.entries(SIZES)) {
    const file = openSync(join(dir, name), 'w');
    const piece = Buffer.alloc(1_000_000, 'body ');
    for (let at = 0; at < size; at += piece.length) writeSync(file, piece, 0, Math.min(piece.length, size - at));
    ftruncateSync(file, size);
    closeSync(file);
  }
  return dir;
}

/** nginx as the members: it sends files and drops request bodies, at little cost. */
async function startMembers(dir) {
  const own = session.path('members');
  mkdirSync(own);
  const sockets = Array.from({ length: MEMBERS }, (_, i) => session.path(`member${i + 1}.sock`));
  const listens = sockets.map((path) => `        listen unix:${path};`).join('\n');
  const server = `${listens}\n        root ${dir};\n        open_file_cache max=100;\n        client_max_body_size 0;\n        location /up { return 204; }`;
  const started = startProcess('members', { dir: own, server, cpu: LOAD_CORE, sending: ['sendfile off;', 'output_buffers 2 256k;'] });
  await untilAnswers(sockets[0], { path: PROBE, processes: [started] });
  return sockets;
}

async function startNginx({ dir, members, files }) {
  const own = session.path('nginx');
  mkdirSync(own);
  const port = await freePort();
  let started;
  if (files) {
    const server = `        listen 127.0.0.1:${port} backlog=4096;\n        root ${dir};\n        open_file_cache max=100;`;
    started = startProcess('nginx', { dir: own, server, cpu: PROXY_CORE, sending: ['sendfile on;', 'tcp_nopush on;'] });
  } else {
    // A request body is stored from the same size on as Hostler's, and no answer goes to a file.
    const text = nginxConfiguration({ dir: own, port, upstreams: members })
      .replace('client_max_body_size 10m', 'client_max_body_size 0')
      .replace('proxy_buffer_size 8k;', 'proxy_buffer_size 8k;\n        proxy_max_temp_file_size 0;');
    started = session.start('nginx', ['-e', 'stderr', '-p', own, '-c', session.write('nginx.conf', text)], { cpu: PROXY_CORE, name: 'nginx' });
  }
  await untilAnswers(port, { path: PROBE, processes: [started] });
  return { port, processes: [started] };
}

function startProcess(name, { dir, server, cpu, sending }) {
  const text = `user ${process.getuid() === 0 ? 'root' : process.env.USER};\n${opening({ dir, sending })}    server {\n${server}\n    }\n}\n`;
  return session.start('nginx', ['-e', 'stderr', '-p', dir, '-c', session.write(`${name}.conf`, text)], { cpu, name });
}

async function startHostler(binary, { dir, members, files }) {
  process.env.HOSTLER_BIN = binary;
  const pool = [`members = ${JSON.stringify(members.map((path) => `unix:${path}`))}`, 'concurrency = 64'];
  const settings = files
    ? { threads: 1, more: `[[routes]]\nmatch = "*"\nstatic = { dir = ${JSON.stringify(dir)} }\n` }
    : { pool, queueTimeout: '5s', threads: 1 };
  const running = await launch(session, settings, { cpu: PROXY_CORE });
  await untilAnswers(running.port, { path: PROBE, processes: running.processes });
  return running;
}

function say(what, rows, unit) {
  const names = [...new Set(rows.map(({ peer }) => peer))];
  const of = (peer) => `${peer} ${median(rows.filter((row) => row.peer === peer).map((row) => row.value)).toFixed(2)}`;
  const against = names.filter((name) => name !== 'new');
  const ratio = (other) => `new / ${other} ${summaryText(pairedRatio(rows, { one: 'new', other, value: (row) => row.value }), 3)}`;
  console.log(`${what}: ${names.map(of).join(', ')} ${unit}; ${against.map(ratio).join('; ')}`);
}
