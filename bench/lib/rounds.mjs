// Rounds of measurements in which all peers take turns. Knows neither the peers nor the measured figures.
import { loadAverage } from './procfs.mjs';

/** The list with another first element, so that the peers take turns to be first. */
export function rotated(list, by) {
  const first = by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

/** The titles of peers by name. */
export function titlesOf(peers) {
  return Object.fromEntries(Object.entries(peers).map(([name, { title }]) => [name, title]));
}

/**
 * In each round, each cell is measured for all peers in turn, with another peer first each time. `peers` is a list, or a
 * function that returns the peers for a cell. `measure` returns the figures of one row or of several. `ending` runs after all
 * peers had their turn, and returns rows with the names of their peers. Every row has its round and the load of the machine
 * before it. `told` makes the text of a step's result for the progress.
 */
export async function inRounds({ rounds, cells = [{}], peers, progress, told, ending }, measure) {
  const rows = [];
  const step = async (head, work) => {
    const load1 = loadAverage();
    const found = [await work()].flat().map((row) => ({ ...head, load1, ...row }));
    rows.push(...found);
    progress.step(`round ${head.round}/${rounds}  ${told(found)}`);
  };
  for (let round = 1; round <= rounds; round += 1) {
    for (const cell of cells) {
      const able = Array.isArray(peers) ? peers : peers(cell);
      for (const peer of rotated(able, round - 1)) await step({ round, peer }, () => measure({ round, cell, peer }));
    }
    if (ending) await step({ round }, () => ending({ round, found: rows.filter((row) => row.round === round) }));
  }
  return rows;
}
