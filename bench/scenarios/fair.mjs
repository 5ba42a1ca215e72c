// Fair queues: four crawlers ask for twice the capacity of the workers, and people for 0.3 of it. Measures how many people are
// answered, and how fast, and how equal the shares of the crawlers are.
import { MIX, QUEUE_TIMEOUT, RENDER_TITLES, SHARED_RENDERS, WARM_AT_ONCE, WORKERS, prepareRenders, stopAll } from '../peers/renders.mjs';
import { app } from '../lib/app.mjs';
import { measureCapacity } from '../lib/capacity.mjs';
import { closedLoop, openLoop, openLoopByEdge } from '../lib/load.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds } from '../lib/rounds.mjs';

/** Each of them asks for more than an equal share of what people leave: 0.7 / 4. */
const CRAWLERS = { share: 2, edges: 4, uneven: true, from: '198.51.%d.7' };
const PEOPLE = { share: 0.3, edges: 200, from: '203.0.%d.9' };
/** Longer than the limit of the queues, so that a response at that limit still counts. */
const CLIENT_TIMEOUT = 10;
/** The limit of each client in requests a second, as a part of the capacity. */
const LIMIT = 0.1;

export const fair = {
  name: 'fair',
  peers: Object.keys(SHARED_RENDERS),
  titles: { ...RENDER_TITLES, fair: 'Hostler, `queue.fair = "client"`', hostler: 'Hostler, in order of arrival', limits: 'nginx with `limit_req` -> HAProxy' },
  settings: { rounds: 4, warmup: 2, alone: 8, during: 15, capacitySeconds: 8 },
  quick: { rounds: 1, warmup: 1, alone: 3, during: 4, capacitySeconds: 2 },

  lasts: ({ rounds, warmup, alone, during, capacitySeconds }, peers) => 2 * warmup + 2 * capacitySeconds + rounds * peers.length * (warmup + alone + during + 4),

  prepare: prepareRenders,

  async run(session, { peers, rounds, warmup, alone, during, capacitySeconds }) {
    const settings = { rounds, warmup, alone, during };
    const progress = createProgress({ steps: 1 + rounds * peers.length, plannedSeconds: fair.lasts({ ...settings, capacitySeconds }, peers) });
    progress.begin('fair');
    const capacity = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds: capacitySeconds });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const rows = await inRounds({ rounds, peers, progress, told: ([row]) => described(row) }, (turn) => oneRun(session, { ...turn, ...settings, capacity }));
    return { settings: { ...settings, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name, crawlers: CRAWLERS, people: PEOPLE, patience: CLIENT_TIMEOUT, limit: limitOf(capacity) }, capacity, rows };
  },
};

const limitOf = ({ rate }) => Math.max(1, Math.round(LIMIT * rate));

async function oneRun(session, { peer, round, warmup, alone, during, capacity }) {
  const { port, processes } = await SHARED_RENDERS[peer](session, limitOf(capacity));
  // From many addresses, so that no limit of a client refuses it.
  await closedLoop(session, { ports: [port], app, mix: { ...MIX, edges: 100 }, seconds: warmup, seed: round, each: WARM_AT_ONCE, from: '192.0.%d.1' });
  const loop = ({ share, edges, uneven, from }, seconds, seed, run = openLoop) =>
    run(session, { port, app, mix: { ...MIX, edges, uneven }, rate: share * capacity.rate, seconds, seed, from, patience: CLIENT_TIMEOUT });
  const before = await loop(PEOPLE, alone, round);
  const [{ pages, ...people }, crawlers] = await Promise.all([loop(PEOPLE, during, round + 1000, openLoopByEdge), loop(CRAWLERS, during, round + 2000, openLoopByEdge)]);
  await stopAll(session, processes);
  return { alone: before, people: { ...people, in_time: pages.reduce((sum, { short, long }) => sum + short + long, 0) }, crawlers };
}

function described({ peer, alone, people, crawlers }) {
  const share = ({ ok, planned }) => `${((100 * ok) / planned).toFixed(0)} %`;
  const ms = (us) => (Number.isFinite(us) ? `${(us / 1000).toFixed(0)} ms` : 'never');
  return `${peer}: ${share(people)} of the people answered, p50 ${ms(people.p50_us)}, p99 ${ms(people.p99_us)} (alone ${ms(alone.p99_us)}); ${share(crawlers)} of the crawlers' requests`;
}
