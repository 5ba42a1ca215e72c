// Render tail: the waiting times for a page under open-loop Poisson load, with two workers behind each peer, beside those of
// an ideal queue with the same arrivals.
import { MIX, MORE_RENDERS, QUEUE_TIMEOUT, RENDERS, RENDER_TITLES, WARM_AT_ONCE, WORKERS, prepareRenders, stopAll, workersOf } from '../peers/renders.mjs';
import { app } from '../lib/app.mjs';
import { measureCapacity } from '../lib/capacity.mjs';
import { arrivals, closedLoop, figures, slowdownP99, steppedLoop } from '../lib/load.mjs';
import { workTime } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { idealTimes, serviceTimes, variation } from '../lib/queue.mjs';
import { eachRound, inTurn } from '../lib/rounds.mjs';
import { longRun, typicalSeeds } from '../lib/schedules.mjs';
import { percentile } from '../lib/statistics.mjs';

const LOADS = [0.5, 0.7, 0.9];
const PEERS = { ...RENDERS, ...MORE_RENDERS };
/** More than the seeds that are tried for a round. */
const SEEDS_EACH = 1000;

export const tail = {
  name: 'tail',
  peers: Object.keys(PEERS),
  titles: { ...RENDER_TITLES, bound: 'an ideal queue (M/G/k, simulated)' },
  settings: { rounds: 5, slices: 3, seconds: 3, warmup: 2, capacitySeconds: 10 },
  quick: { rounds: 1, slices: 1, seconds: 1, warmup: 1, capacitySeconds: 2 },

  lasts: ({ rounds, slices, seconds, warmup, capacitySeconds }, peers) =>
    2 * warmup + capacitySeconds + 10 + rounds * peers.length * (warmup + 1.5 + LOADS.length * slices * (seconds + 0.4)),

  prepare: prepareRenders,

  async run(session, { peers, ...lengths }) {
    const { rounds, warmup, capacitySeconds } = lengths;
    const progress = createProgress({ steps: 1 + rounds * LOADS.length, plannedSeconds: tail.lasts(lengths, peers) });
    progress.begin('render tail');
    const capacity = await measureCapacity(session, { app, mix: MIX, workers: WORKERS, warmup, seconds: capacitySeconds });
    const plans = await planned(session, { capacity, ...lengths });
    progress.step(`capacity: two bare workers render ${capacity.rate.toFixed(1)} pages/s of this mix`);
    const services = LOADS.map(() => [[], []]);
    const rows = await eachRound({ rounds, peers, progress, told }, (turn) => oneRound(session, { ...turn, ...lengths, peers, capacity, plans, services }));
    const settings = { ...lengths, workers: WORKERS, queueTimeout: QUEUE_TIMEOUT, mix: MIX, app: app.name, short: app.short, long: app.long };
    return { settings, loads: LOADS, capacity, ideal: LOADS.map((load, i) => ideal({ load, capacity, ...lengths, plan: plans[i], services: services[i] })), rows };
  },
};

/** For each load, the seeds of each round, chosen before any peer is measured. */
async function planned(session, { capacity, rounds, slices, seconds }) {
  const services = nominal(capacity);
  const queue = { services, servers: WORKERS };
  const plans = [];
  for (const [i, load] of LOADS.entries()) {
    const rate = load * capacity.rate;
    const plan = (seed) => arrivals(session, { app, mix: MIX, steps: [{ rate, seconds }], seed });
    const wanted = longRun({ rate, seconds, longShare: MIX.longShare, ...queue });
    const chosen = [];
    for (let round = 1; round <= rounds; round += 1) {
      chosen.push(await typicalSeeds({ plan, from: (round * LOADS.length + i) * SEEDS_EACH, slices, wanted, ...queue }));
    }
    plans.push({ wanted, chosen });
  }
  return plans;
}

/** A service time for each kind: the medians of one worker, in the ratio in which the workers reach their capacity. */
function nominal({ rate, render_us: { short, long } }) {
  const mean = (1 - MIX.longShare) * short + MIX.longShare * long;
  const scale = (WORKERS * 1e6) / rate / mean;
  return [[short * scale], [long * scale]];
}

/**
 * New processes for all peers, which stay up side by side, all with the same warm-up. Then at each load short slices in turns:
 * the machine changes within seconds by more than the peers differ. Each peer gets the same slices.
 */
async function oneRound(session, { round, order, step, peers, seconds, warmup, capacity, plans, services }) {
  const running = new Map();
  for (const peer of order) {
    const { port, ports = [port], processes } = await PEERS[peer](session);
    await closedLoop(session, { ports, app, mix: MIX, seconds: warmup, seed: round, each: WARM_AT_ONCE / ports.length });
    running.set(peer, { ports, processes, workers: workersOf(processes) });
  }
  for (const [i, load] of LOADS.entries()) {
    const { seeds } = plans[i].chosen[round - 1];
    await step({ load }, async () => {
      const found = new Map(order.map((peer) => [peer, { hits: [], slices: [], ran: 0, waited: 0 }]));
      for (const [turn, seed] of seeds.entries()) {
        for (const peer of inTurn(peers, ((round - 1) * LOADS.length + i) * seeds.length + turn)) {
          const at = { ports: running.get(peer).ports, app, mix: MIX, steps: [{ rate: load * capacity.rate, seconds }], seed };
          await slice(session, { at, workers: running.get(peer).workers, into: found.get(peer) });
        }
      }
      const alone = capacity.render_us;
      return [...[...found].map(([peer, all]) => ({ peer, ...figured(all, alone) })), ...bound(found.get('bare'), { known: services[i], alone })];
    });
  }
  for (const { processes } of running.values()) await stopAll(session, processes);
}

async function slice(session, { at, workers, into }) {
  const before = workTime(workers);
  const { hits } = await steppedLoop(session, at);
  const after = workTime(workers);
  into.hits.push(...hits);
  into.slices.push(hits);
  into.ran += after.ran - before.ran;
  into.waited += after.waited - before.waited;
}

/** `alone`: the time of a short and of a long page that nothing delays. */
function figured({ hits, ran, waited }, alone) {
  const all = figures({ planned: hits.length, hits });
  return { ...all, slowdown_p99: slowdownP99(hits, alone), worker_cpu_us: ran / 1000 / all.ok, worker_wait_us: waited / 1000 / all.ok };
}

/** What an ideal queue would do with the arrivals of this round and the service times of its bare workers. */
function bound(bare, { known, alone }) {
  if (!bare) return [];
  const services = [[], []];
  for (const hits of bare.slices) {
    for (let worker = 0; worker < WORKERS; worker += 1) {
      serviceTimes(hits.filter((hit) => hit[5] === worker)).forEach((times, kind) => services[kind].push(...times));
    }
  }
  services.forEach((times, kind) => known[kind].push(...times));
  const slices = bare.slices.map((hits) => hits.map(([long, , , , at]) => [at, long]).sort(([one], [other]) => one - other));
  const mean = services.map((times) => times.reduce((sum, one) => sum + one, 0) / times.length);
  const [short, long] = idealTimes(slices, { services, servers: WORKERS });
  const p99 = (values) => percentile(values, 99);
  return [{
    peer: 'bound', planned: bare.hits.length, p99_us: p99([...short, ...long]), short: { p99_us: p99(short) }, long: { p99_us: p99(long) },
    slowdown_p99: p99([...short.map((time) => time / alone.short), ...long.map((time) => time / alone.long)]), service_us: { short: mean[0], long: mean[1] },
  }];
}

/** How much the p99 of the ideal queue varies by chance: with any arrivals, and with the chosen ones. */
function ideal({ load, capacity, rounds, slices, seconds, plan, services }) {
  const sample = { rate: load * capacity.rate, seconds, longShare: MIX.longShare, servers: WORKERS };
  const known = services.every((times) => times.length > 0) ? services : nominal(capacity);
  return {
    load,
    requests: Math.round(sample.rate * seconds * slices * rounds),
    relative_any: variation({ ...sample, services: known, slices: slices * rounds }).relative,
    relative_any_round: variation({ ...sample, services: known, slices }).relative,
    furthest_chosen: Math.max(...plan.chosen.map(({ distance }) => distance)),
    tried: plan.chosen.reduce((sum, { tried }) => sum + tried, 0),
  };
}

function told(rows) {
  const ms = (us) => (us === null ? 'never' : `${(us / 1000).toFixed(0)} ms`);
  const bad = ({ refused = 0, failed = 0 }) => `${refused > 0 ? ` (${refused} refused)` : ''}${failed > 0 ? ` (${failed} FAILED)` : ''}`;
  return `load ${rows[0].load}  p99: ${rows.map((row) => `${row.peer} ${ms(row.p99_us)}${bad(row)}`).join(', ')}`;
}
