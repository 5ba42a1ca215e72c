// Proxy cost: CPU per request and requests per second of one proxy thread in front of workers that cost nothing.
import { availableParallelism } from 'node:os';
import { chain } from '../peers/chain.mjs';
import { haproxy } from '../peers/haproxy.mjs';
import { hostler } from '../peers/hostler.mjs';
import { nginx } from '../peers/nginx.mjs';
import { freePort } from '../lib/session.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { createProgress } from '../lib/progress.mjs';
import { cpuTime, family, loadAverage } from '../lib/procfs.mjs';
import { buildHostler, buildUpstream, installPackages, upstreamBinary } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';

const PEERS = { hostler, haproxy, nginx, chain };
const MEMBERS = 4;
const CELLS = [
  { slots: 64, connections: 50 },
  { slots: 64, connections: 200 },
  { slots: 1, connections: 50 },
  { slots: 1, connections: 200 },
];
const PROXY_CORE = 0;
const LOAD_CORE = 1;
const PROBE = '/rooms/48213';

export const proxy = {
  name: 'proxy',
  peers: Object.keys(PEERS),
  titles: Object.fromEntries(Object.entries(PEERS).map(([name, peer]) => [name, peer.title])),
  settings: { rounds: 6, seconds: 4, warmup: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1 },

  async prepare(peers) {
    if (availableParallelism() < 2) throw new Error('the proxy scenario needs two cores: one for the proxy, one for the load');
    await installPackages(['wrk', ...peers.flatMap((name) => PEERS[name].packages)]);
    await buildUpstream();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup }) {
    const upstream = await startUpstream(session);
    const plan = planned({ peers, rounds });
    const progress = createProgress({ steps: plan.length, plannedSeconds: plan.length * (seconds + warmup + 0.5) });
    progress.begin('proxy cost');
    const rows = [];
    for (const step of plan) {
      const row = await measure(session, { ...step, upstream, seconds, warmup });
      rows.push(row);
      progress.step(described(row, rounds));
    }
    await session.stop(upstream.started);
    return { settings: { rounds, seconds, warmup, members: MEMBERS }, cells: CELLS, rows };
  },
};

/** All peers in turn for each cell of each round; who comes first moves on by one every round. */
export function planned({ peers, rounds }) {
  const steps = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const cell of CELLS) {
      const able = ['direct', ...peers].filter((name) => cell.slots > 1 || !['nginx', 'direct'].includes(name));
      const first = (round - 1) % able.length;
      for (const peer of [...able.slice(first), ...able.slice(0, first)]) steps.push({ round, ...cell, peer });
    }
  }
  return steps;
}

/** Four Unix sockets for the proxies, and a port for wrk alone: how fast this generator and this upstream can be. */
async function startUpstream(session) {
  const port = await freePort();
  const members = Array.from({ length: MEMBERS }, (_, i) => session.path(`member${i + 1}.sock`));
  const addresses = [...members.map((path) => `unix:${path}`), `127.0.0.1:${port}`];
  const started = session.start(upstreamBinary, addresses, { cpu: LOAD_CORE, name: 'upstream' });
  const { body } = await untilAnswers(port, { path: PROBE, processes: [started] });
  return { started, members, port, body };
}

async function measure(session, { round, slots, connections, peer, upstream, seconds, warmup }) {
  const load1 = loadAverage();
  const direct = { port: upstream.port, processes: [] };
  const settings = { members: upstream.members, slots, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE };
  const running = peer === 'direct' ? direct : await PEERS[peer].start(session, settings);
  const answer = await get(running.port, PROBE);
  if (answer.body !== upstream.body) throw new Error(`${peer} changed the answer:\n${answer.body}`);

  await wrk(session, { port: running.port, connections, seconds: warmup, cpu: LOAD_CORE });
  const pids = running.processes.flatMap((one) => family(one.pid));
  const before = cpuTime(pids);
  const figures = await wrk(session, { port: running.port, connections, seconds, cpu: LOAD_CORE });
  const after = cpuTime(pids);
  for (const one of running.processes) await session.stop(one);

  return {
    round, slots, connections, peer, load1, ...figures,
    cpu_ns: after.scheduled - before.scheduled,
    cpu_ticks_ns: after.ticks - before.ticks,
  };
}

function described({ round, slots, connections, peer, requests, seconds, cpu_ns, errors }, rounds) {
  const cpu = peer === 'direct' ? '' : `${(cpu_ns / requests / 1000).toFixed(2)} us CPU/request, `;
  const failed = Object.values(errors).reduce((sum, count) => sum + count, 0);
  return `round ${round}/${rounds}  ${slots} slot${slots > 1 ? 's' : ''}, c = ${connections}  ${peer}: `
    + `${cpu}${Math.round(requests / seconds)} requests/s${failed > 0 ? `, ${failed} ERRORS` : ''}`;
}
