// Proxy cost: CPU per request and requests per second of one proxy thread in front of members that cost nothing.
import { chain } from '../peers/chain.mjs';
import { haproxy } from '../peers/haproxy.mjs';
import { hostler } from '../peers/hostler.mjs';
import { nginx } from '../peers/nginx.mjs';
import { startMembers } from '../peers/members.mjs';
import { relay } from '../peers/relay.mjs';
import { stopAll } from '../peers/renders.mjs';
import { get } from '../lib/http.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress, errorsTold } from '../lib/progress.mjs';
import { inRounds, titlesOf } from '../lib/rounds.mjs';
import { buildHostler, buildRelay, buildUpstream, installPackages, needTwoCores } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';

const PEERS = { hostler, relay, haproxy, nginx, chain };
/** They give a member as many requests as come. */
const WITHOUT_A_QUEUE = ['nginx', 'relay', 'direct'];
export const MEMBERS = 4;
export const CELLS = [
  { slots: 64, connections: 50 },
  { slots: 64, connections: 200 },
  { slots: 1, connections: 50 },
  { slots: 1, connections: 200 },
];
export const PROXY_CORE = 0;
export const LOAD_CORE = 1;
export const PROBE = '/rooms/48213';

export const proxy = {
  name: 'proxy',
  peers: Object.keys(PEERS),
  titles: titlesOf(PEERS),
  settings: { rounds: 4, seconds: 2, warmup: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1 },

  lasts: ({ rounds, seconds, warmup }, peers) => rounds * CELLS.flatMap((cell) => ableTo(cell, peers)).length * (seconds + warmup + 0.5),

  async prepare(peers) {
    needTwoCores('proxy', 'the proxy');
    await installPackages(['wrk', ...peers.flatMap((name) => PEERS[name].packages)]);
    await buildUpstream();
    if (peers.includes('relay')) await buildRelay();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup }) {
    const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
    const able = (cell) => ableTo(cell, peers);
    const steps = rounds * CELLS.flatMap(able).length;
    const progress = createProgress({ steps, plannedSeconds: proxy.lasts({ rounds, seconds, warmup }, peers) });
    progress.begin('proxy cost');
    const rows = await inRounds({ rounds, cells: CELLS, peers: able, progress, told }, (turn) => measure(session, { ...turn, upstream, seconds, warmup }));
    await session.stop(upstream.started);
    return { settings: { rounds, seconds, warmup, members: MEMBERS }, cells: CELLS, rows };
  },
};

/**
 * The peers of a cell. wrk without a proxy is included to show the limit of generator and members. If there is a queue, only
 * peers with a queue take part.
 */
export function ableTo({ slots }, peers) {
  return ['direct', ...peers].filter((name) => slots > 1 || !WITHOUT_A_QUEUE.includes(name));
}

async function measure(session, { cell: { slots, connections }, peer, upstream, seconds, warmup }) {
  const direct = { port: upstream.port, processes: [] };
  const settings = { members: upstream.members, slots, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE };
  const running = peer === 'direct' ? direct : await PEERS[peer].start(session, settings);
  const answer = await get(running.port, PROBE);
  if (answer.body !== upstream.body) throw new Error(`${peer} changed the answer:\n${answer.body}`);

  await wrk(session, { port: running.port, connections, seconds: warmup, cpu: LOAD_CORE });
  const figures = await cpuDuring(running.processes, () => wrk(session, { port: running.port, connections, seconds, cpu: LOAD_CORE }));
  await stopAll(session, running.processes);
  return { slots, connections, ...figures };
}

function told([{ slots, connections, peer, requests, seconds, cpu_ns, errors }]) {
  const cpu = peer === 'direct' ? '' : `${(cpu_ns / requests / 1000).toFixed(2)} us CPU/request, `;
  return `${slots} slot${slots > 1 ? 's' : ''}, c = ${connections}  ${peer}: ${cpu}${Math.round(requests / seconds)} requests/s${errorsTold(errors)}`;
}
