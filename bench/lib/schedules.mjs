// Chooses schedules of arrivals that are typical, so that rounds can be compared: with all schedules of this length, the ideal
// p99 alone differs by more than the peers do. The choice knows the ideal queue, and no peer.
import { idealP99, poisson } from './queue.mjs';
import { mulberry32 } from './zipf.mjs';

/** So far from the long run the ideal p99 of a chosen schedule may be. */
export const WITHIN = 0.05;
/** With so many to choose from, the nearest one is taken. */
const MOST = 60;
const LONG_RUN_SLICES = 600;

/** The ideal p99 over very many slices. */
export function longRun({ rate, seconds, longShare, services, servers }) {
  const random = mulberry32(97);
  const slices = Array.from({ length: LONG_RUN_SLICES }, () => poisson({ rate, seconds, longShare }, random));
  return idealP99(slices, { services, servers, draws: 1 });
}

/**
 * The seeds of the slices of one round. `plan` returns the arrivals of a seed, `wanted` is the p99 of the long run. Seeds are
 * counted upwards from `from` and tried in sets, so no two rounds share one if their `from` lie far enough apart.
 */
export async function typicalSeeds({ plan, from, slices: count, wanted, services, servers }) {
  let best = null;
  for (let tried = 0; tried < MOST; tried += 1) {
    const seeds = Array.from({ length: count }, (_, i) => from + tried * count + i);
    const slices = [];
    for (const seed of seeds) slices.push(await plan(seed));
    const p99 = idealP99(slices, { services, servers, draws: 1 });
    const distance = Math.abs(p99 / wanted - 1);
    if (best === null || distance < best.distance) best = { seeds, p99, distance, tried: tried + 1 };
    if (distance <= WITHIN) break;
  }
  return best;
}
