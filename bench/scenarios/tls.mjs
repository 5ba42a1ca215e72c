// TLS and HTTP/2: the cost of a handshake for one proxy thread, and of a request after it.
import { certificate } from '../lib/certificate.mjs';
import { h2load } from '../lib/h2load.mjs';
import { handshakes } from '../lib/handshakes.mjs';
import { get } from '../lib/http.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress, errorsTold } from '../lib/progress.mjs';
import { inRounds, titlesOf } from '../lib/rounds.mjs';
import { buildHandshakes, buildHostler, buildUpstream, installPackages, needTwoCores } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';
import { haproxy } from '../peers/haproxy.mjs';
import { hostler } from '../peers/hostler.mjs';
import { startMembers } from '../peers/members.mjs';
import { nginx } from '../peers/nginx.mjs';
import { stopAll } from '../peers/renders.mjs';

const PEERS = { hostler, haproxy, nginx };
const MEMBERS = 4;
const SLOTS = 64;
const PROXY_CORE = 0;
const LOAD_CORE = 1;
const PROBE = '/rooms/48213';
const CLIENTS = 8;

/** `of`: what is counted. In the first two cells each request has its own connection. */
const CELLS = [
  { name: 'full', of: 'handshake', load: (session, to) => handshakes(session, { ...to, clients: CLIENTS, resume: false }) },
  { name: 'resumed', of: 'handshake', load: (session, to) => handshakes(session, { ...to, clients: CLIENTS, resume: true }) },
  { name: 'http1', of: 'request', load: (session, to) => wrk(session, { ...to, connections: 50, tls: true }) },
  { name: 'h2 x 1', of: 'request', load: (session, to) => h2load(session, { ...to, connections: 100, streams: 1 }) },
  { name: 'h2 x 20', of: 'request', load: (session, to) => h2load(session, { ...to, connections: 10, streams: 20 }) },
];

export const tls = {
  name: 'tls',
  peers: Object.keys(PEERS),
  titles: titlesOf(PEERS),
  settings: { rounds: 4, seconds: 2, warmup: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1 },

  lasts: ({ rounds, seconds, warmup }, peers) => rounds * CELLS.length * peers.length * (seconds + warmup + 1),

  async prepare(peers) {
    needTwoCores('tls', 'the proxy');
    await installPackages(['openssl', 'nghttp2-client', 'wrk', ...peers.flatMap((name) => PEERS[name].packages)]);
    await buildHandshakes();
    await buildUpstream();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup }) {
    const steps = rounds * CELLS.length * peers.length;
    const progress = createProgress({ steps, plannedSeconds: tls.lasts({ rounds, seconds, warmup }, peers) });
    progress.begin('tls');
    const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
    const pem = await certificate(session);
    const rows = await inRounds({ rounds, cells: CELLS, peers, progress, told }, (turn) => measure(session, { ...turn, upstream, pem, seconds, warmup }));
    await session.stop(upstream.started);
    const cells = CELLS.map(({ name, of }) => ({ name, of }));
    return { settings: { rounds, seconds, warmup, members: MEMBERS, clients: CLIENTS }, cells, rows };
  },
};

async function measure(session, { cell, peer, upstream, pem, seconds, warmup }) {
  const settings = { members: upstream.members, slots: SLOTS, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE, tls: pem };
  const running = await PEERS[peer].start(session, settings);
  const answer = await get(running.port, PROBE, { tls: true });
  if (answer.body !== upstream.body) throw new Error(`${peer} changed the answer:\n${answer.body}`);

  const to = { port: running.port, path: PROBE, cpu: LOAD_CORE };
  await cell.load(session, { ...to, seconds: warmup });
  const figures = await cpuDuring(running.processes, () => cell.load(session, { ...to, seconds }));
  await stopAll(session, running.processes);
  check(cell, peer, figures);
  return { cell: cell.name, ...figures };
}

/** A peer that does not resume sessions, or speaks another protocol, would not be comparable. */
function check({ name }, peer, { requests, resumed = 0, protocol }) {
  if (requests === 0) throw new Error(`${peer} answered nothing (${name})`);
  if (name === 'full' && resumed > 0) throw new Error(`${peer}: ${resumed} of ${requests} full handshakes were resumed`);
  if (name === 'resumed' && resumed < requests - CLIENTS) throw new Error(`${peer} resumed ${resumed} of ${requests} sessions`);
  if (name.startsWith('h2') && protocol !== 'h2') throw new Error(`${peer} spoke ${protocol}, not h2`);
}

function told([{ cell, peer, requests, seconds, cpu_ns, errors }]) {
  const { of } = CELLS.find(({ name }) => name === cell);
  return `${cell}  ${peer}: ${(cpu_ns / requests / 1000).toFixed(2)} us CPU/${of}, ${Math.round(requests / seconds)}/s${errorsTold(errors)}`;
}
