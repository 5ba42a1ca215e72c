// TLS and HTTP/2: what a handshake costs one proxy thread, and what a request does once it is done.
import { availableParallelism } from 'node:os';
import { certificate } from '../lib/certificate.mjs';
import { h2load } from '../lib/h2load.mjs';
import { handshakes } from '../lib/handshakes.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { createProgress } from '../lib/progress.mjs';
import { cpuTime, family, loadAverage } from '../lib/procfs.mjs';
import { buildHandshakes, buildHostler, buildUpstream, installPackages, upstreamBinary } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';
import { haproxy } from '../peers/haproxy.mjs';
import { hostler } from '../peers/hostler.mjs';
import { nginx } from '../peers/nginx.mjs';
import { rotated } from '../peers/renders.mjs';

const PEERS = { hostler, haproxy, nginx };
const MEMBERS = 4;
const SLOTS = 64;
const PROXY_CORE = 0;
const LOAD_CORE = 1;
const PROBE = '/rooms/48213';
const CLIENTS = 8;

/** `of`: what is counted. In the first two each request has a connection of its own. */
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
  titles: Object.fromEntries(Object.entries(PEERS).map(([name, peer]) => [name, peer.title])),
  settings: { rounds: 6, seconds: 4, warmup: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1 },

  async prepare(peers) {
    if (availableParallelism() < 2) throw new Error('the tls scenario needs two cores: one for the proxy, one for the load');
    await installPackages(['openssl', 'nghttp2-client', 'wrk', ...peers.flatMap((name) => PEERS[name].packages)]);
    await buildHandshakes();
    await buildUpstream();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup }) {
    const steps = rounds * CELLS.length * peers.length;
    const progress = createProgress({ steps, plannedSeconds: steps * (seconds + warmup + 1) });
    progress.begin('tls');
    const upstream = await startUpstream(session);
    const pem = await certificate(session);
    const rows = [];
    for (let round = 1; round <= rounds; round += 1) {
      for (const cell of CELLS) {
        for (const peer of rotated(peers, round - 1)) {
          const row = { round, cell: cell.name, peer, ...(await measure(session, { cell, peer, upstream, pem, seconds, warmup })) };
          rows.push(row);
          progress.step(described(row, cell, rounds));
        }
      }
    }
    await session.stop(upstream.started);
    const cells = CELLS.map(({ name, of }) => ({ name, of }));
    return { settings: { rounds, seconds, warmup, members: MEMBERS, clients: CLIENTS }, cells, rows };
  },
};

async function startUpstream(session) {
  const members = Array.from({ length: MEMBERS }, (_, i) => session.path(`member${i + 1}.sock`));
  const started = session.start(upstreamBinary, members.map((path) => `unix:${path}`), { cpu: LOAD_CORE, name: 'upstream' });
  const { body } = await untilAnswers(members[0], { path: PROBE, processes: [started] });
  return { started, members, body };
}

async function measure(session, { cell, peer, upstream, pem, seconds, warmup }) {
  const load1 = loadAverage();
  const settings = { members: upstream.members, slots: SLOTS, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE, tls: pem };
  const running = await PEERS[peer].start(session, settings);
  const answer = await get(running.port, PROBE, { tls: true });
  if (answer.body !== upstream.body) throw new Error(`${peer} changed the answer:\n${answer.body}`);

  const to = { port: running.port, path: PROBE, cpu: LOAD_CORE };
  await cell.load(session, { ...to, seconds: warmup });
  const pids = running.processes.flatMap((one) => family(one.pid));
  const before = cpuTime(pids);
  const figures = await cell.load(session, { ...to, seconds });
  const after = cpuTime(pids);
  for (const one of running.processes) await session.stop(one);
  check(cell, peer, figures);
  return { load1, ...figures, cpu_ns: after.scheduled - before.scheduled, cpu_ticks_ns: after.ticks - before.ticks };
}

/** A peer that does not resume, or speaks another protocol, would be measured at something else. */
function check({ name }, peer, { requests, resumed = 0, protocol }) {
  if (requests === 0) throw new Error(`${peer} answered nothing (${name})`);
  if (name === 'full' && resumed > 0) throw new Error(`${peer}: ${resumed} of ${requests} full handshakes were resumed`);
  if (name === 'resumed' && resumed < requests - CLIENTS) throw new Error(`${peer} resumed ${resumed} of ${requests} sessions`);
  if (name.startsWith('h2') && protocol !== 'h2') throw new Error(`${peer} spoke ${protocol}, not h2`);
}

function described({ round, cell, peer, requests, seconds, cpu_ns, errors }, { of }, rounds) {
  const failed = Object.values(errors).reduce((sum, count) => sum + count, 0);
  return `round ${round}/${rounds}  ${cell}  ${peer}: ${(cpu_ns / requests / 1000).toFixed(2)} us CPU/${of}, `
    + `${Math.round(requests / seconds)}/s${failed > 0 ? `, ${failed} ERRORS` : ''}`;
}
