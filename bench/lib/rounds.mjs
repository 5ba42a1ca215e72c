// Rounds of measurements, all peers in turn. Knows neither the peers nor what is measured of them.
import { loadAverage } from './procfs.mjs';

/** The list with another first: whoever begins does not always begin. */
export function rotated(list, by) {
  const first = by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

/** What peers are called, by name. */
export function titlesOf(peers) {
  return Object.fromEntries(Object.entries(peers).map(([name, { title }]) => [name, title]));
}

/**
 * In each round each cell is measured for all peers in turn, another first each time; `peers` is a list, or says who is able to take part
 * in a cell. `measure` gives the figures of one row, or of several; `ending` what is measured once all have had their turn, rows that name
 * their peers. Every row says its round and how busy the machine was before. `told` says for progress what a step has found.
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
