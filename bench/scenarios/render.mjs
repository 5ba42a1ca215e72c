// Rendering as a service: one-job batches to @hostler/render behind Hostler, and to npm hypernova with its own cluster.
// Closed loops measure the capacity, bursts the waiting times.
import assert from 'node:assert/strict';
import { ENDPOINT, ISLAND_PEERS } from '../peers/islands.mjs';
import { stopAll } from '../peers/renders.mjs';
import { get } from '../lib/http.mjs';
import { HYPERNOVA, ISLANDS, REACT, installIslands } from '../lib/islands.mjs';
import { closedLoop, steppedLoop } from '../lib/load.mjs';
import { around } from '../lib/phases.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { eachRound, inTurn } from '../lib/rounds.mjs';
import { buildHostler, buildLoad, installPackages } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';

const WORKERS = 2;
const CONNECTIONS = 32;
const EDGES = 32;
/** Shares of npm hypernova's capacity in a closed loop, and seconds. */
const CALM = { load: 0.3, seconds: 1 };
const BURST = { load: 1.5, seconds: 0.3 };
const BURST_ISLAND = 'homes';
/** Longer than Hostler's queue timeout, so each client gets a response or a refusal before. */
const CLIENT_TIMEOUT = 10;
const QUEUE_TIMEOUT = '5s';

export const render = {
  name: 'render',
  peers: Object.keys(ISLAND_PEERS),
  titles: { hostler: 'Hostler, @hostler/render', hypernova: 'npm hypernova, its cluster' },
  settings: { rounds: 3, seconds: 4, warmup: 3, bursts: 10 },
  quick: { rounds: 1, seconds: 2, warmup: 2, bursts: 3 },

  lasts({ rounds, seconds, warmup, bursts }, peers) {
    const perPeer = Object.keys(ISLANDS).length * (seconds + warmup) + bursts * (CALM.seconds + BURST.seconds) + 2;
    return warmup + seconds + rounds * peers.length * perPeer;
  },

  async prepare(peers) {
    await installPackages(['wrk']);
    await buildLoad();
    await installIslands();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup, bursts }) {
    const islands = Object.entries(ISLANDS).map(([island, { batch }]) => ({ island, batch, file: session.write(`${island}.json`, batch) }));
    const steps = 1 + rounds * peers.length * (islands.length + 1);
    const progress = createProgress({ steps, plannedSeconds: render.lasts({ rounds, seconds, warmup, bursts }, peers) });
    progress.begin('render');
    const capacity = await measureCapacity(session, { islands, seconds, warmup });
    progress.step(`npm hypernova answers ${capacity.rate.toFixed(0)} batches/s of ${ISLANDS[BURST_ISLAND].title}`);
    const expected = new Map();
    const rows = await eachRound({ rounds, peers, progress, told }, (turn) => oneRound(session, { ...turn, islands, seconds, warmup, bursts, capacity, expected }));
    const settings = { rounds, seconds, warmup, bursts, workers: WORKERS, connections: CONNECTIONS, edges: EDGES, queueTimeout: QUEUE_TIMEOUT };
    const shown = Object.fromEntries(Object.entries(ISLANDS).map(([name, { title }]) => [name, { title, elements: elements(expected.get(name)) }]));
    const more = { calm: CALM, burst: BURST, burstIsland: BURST_ISLAND, patience: CLIENT_TIMEOUT, hypernova: HYPERNOVA, react: REACT };
    return { settings: { ...settings, ...more }, islands: shown, capacity, rows };
  },
};

/** The capacity from which the bursts are computed: npm hypernova's own, while the generator of the bursts runs beside it. */
async function measureCapacity(session, { islands, seconds, warmup }) {
  const { batch, file } = islands.find(({ island }) => island === BURST_ISLAND);
  const { port, processes } = await ISLAND_PEERS.hypernova(session, { workers: WORKERS, probe: batch });
  const loop = { ports: [port], ...burstLoad(file), seed: 1, each: CONNECTIONS };
  await closedLoop(session, { ...loop, seconds: warmup });
  const { ok, refused, failed, seconds: took } = await closedLoop(session, { ...loop, seconds });
  await stopAll(session, processes);
  if (refused + failed > 0) throw new Error(`npm hypernova failed ${refused + failed} requests: no capacity to speak of`);
  return { rate: ok / took };
}

/** New processes for all peers, then each measurement with all peers in turn, while the others are idle. */
async function oneRound(session, { round, order, step, islands, seconds, warmup, bursts, capacity, expected }) {
  const running = new Map();
  for (const peer of order) {
    running.set(peer, await ISLAND_PEERS[peer](session, { workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, probe: islands[0].batch }));
    await sameAnswers(running.get(peer).port, { peer, islands, expected });
  }
  for (const [i, { island, file }] of islands.entries()) {
    for (const peer of inTurn(order, i)) {
      const loop = { port: running.get(peer).port, path: ENDPOINT, connections: CONNECTIONS, body: file };
      await wrk(session, { ...loop, seconds: warmup });
      await step({ peer, island }, () => cpuDuring(running.get(peer).processes, () => wrk(session, { ...loop, seconds })));
    }
  }
  for (const peer of inTurn(order, islands.length)) {
    const { port } = running.get(peer);
    const { file } = islands.find(({ island }) => island === BURST_ISLAND);
    await step({ peer, bursts }, () => inBursts(session, { port, file, bursts, rate: capacity.rate, seed: round }));
  }
  for (const { processes } of running.values()) await stopAll(session, processes);
}

const burstLoad = (body) => ({ app: { short: ENDPOINT, long: ENDPOINT, body }, mix: { longShare: 0, edges: EDGES } });

async function inBursts(session, { port, file, bursts, rate, seed }) {
  const spell = [CALM, BURST].map(({ load, seconds }) => ({ rate: load * rate, seconds }));
  const steps = [...Array.from({ length: bursts }, () => spell).flat(), spell[0]];
  const { hits, errors } = await steppedLoop(session, { port, ...burstLoad(file), steps, seed, patience: CLIENT_TIMEOUT });
  const every = (CALM.seconds + BURST.seconds) * 1000;
  const spans = Array.from({ length: bursts }, (_, i) => ({ from: i * every + CALM.seconds * 1000, to: (i + 1) * every }));
  return { ...around(hits, spans), errors };
}

/** Every peer must send what the first one sent, otherwise its speed means nothing. Ids and times differ each time. */
async function sameAnswers(port, { peer, islands, expected }) {
  for (const { island, batch } of islands) {
    const { body } = await get(port, ENDPOINT, { body: batch });
    const answer = body.replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'ID').replace(/"duration":[\d.e-]+/, '"duration":0');
    if (!expected.has(island)) expected.set(island, answer);
    assert.equal(answer, expected.get(island), `${peer} answers ${island} in another way`);
    assert.match(answer, /"success":true,"error":null\}\}\}$/);
  }
}

/** The elements of the component itself: the markup has a div and a script around it. */
const elements = (answer) => answer.match(/<[a-z]/g).length - 2;

function told([{ peer, island, requests, seconds, cpu_ns, p99_us, during, refused, failed }]) {
  const at = `${island ?? 'bursts'}  ${peer}:`;
  if (!island) return `${at} p99 ${(during.p99_us / 1000).toFixed(1)} ms${refused + failed > 0 ? `, ${refused} refused, ${failed} FAILED` : ''}`;
  return `${at} ${Math.round(requests / seconds)} batches/s, ${(cpu_ns / requests / 1000).toFixed(0)} us CPU each, p99 ${(p99_us / 1000).toFixed(1)} ms`;
}
