// Rounds of measurements in which all peers take turns. Knows neither the peers nor the measured figures.
import { loadAverage } from './procfs.mjs';

/**
 * The peers in the order of this turn: rows of a Williams square. In so many turns as there are peers (twice as many for an odd number)
 * each peer has each place equally often, and comes after each other peer equally often. What one peer leaves behind, such as a
 * warm processor, is then not always the next one's.
 */
export function inTurn(list, turn) {
  const count = list.length;
  const order = list.map((_, place) => (place % 2 === 1 ? (place + 1) / 2 : (count - place / 2) % count));
  const shifted = order.map((at) => list[(at + turn) % count]);
  return count % 2 === 1 && Math.floor(turn / count) % 2 === 1 ? shifted.reverse() : shifted;
}

/** The titles of peers by name. */
export function titlesOf(peers) {
  return Object.fromEntries(Object.entries(peers).map(([name, { title }]) => [name, title]));
}

/**
 * Runs `oneRound` in each round and returns all rows. `oneRound` gets the number of the `round`, the peers in the `order` of
 * this round, the rows that the round has `found` so far, and `step`. `step(head, work)` measures: `work` returns the figures
 * of one row or of several. Every row has its round, `head`, and the load of the machine before it. `told` makes the text of a
 * step's rows for the progress; without `progress` nothing is printed.
 */
export async function eachRound({ rounds, peers = [], progress, told }, oneRound) {
  const rows = [];
  for (let round = 1; round <= rounds; round += 1) {
    const found = [];
    const step = async (head, work) => {
      const load1 = loadAverage();
      const measured = [await work()].flat().map((row) => ({ round, ...head, load1, ...row }));
      found.push(...measured);
      progress?.step(`round ${round}/${rounds}  ${told(measured)}`);
    };
    await oneRound({ round, order: inTurn(peers, round - 1), found, step });
    rows.push(...found);
  }
  return rows;
}

/**
 * In each round, each cell is measured for all peers in turn, with another peer first each time. `peers` is a list, or a
 * function that returns the peers for a cell. `measure` returns the figures of one row or of several. `ending` runs after all
 * peers had their turn, and returns rows with the names of their peers.
 */
export function inRounds({ rounds, cells = [{}], peers, progress, told, ending }, measure) {
  return eachRound({ rounds, progress, told }, async ({ round, found, step }) => {
    for (const cell of cells) {
      const able = Array.isArray(peers) ? peers : peers(cell);
      for (const peer of inTurn(able, round - 1)) await step({ peer }, () => measure({ round, cell, peer }));
    }
    if (ending) await step({}, () => ending({ round, found }));
  });
}
