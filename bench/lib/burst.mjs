// Runs the generator of bursts (bench/load/burst). Knows the generator, not what it points at.
import { burstBinary } from './tools.mjs';

/** It stands for other machines, as the generator of open loops does: see there. */
const asOtherMachines = (command) => (process.getuid() === 0 ? ['nice', '-n', '-10', ...command] : command);

/**
 * `count` requests at once to each of `targets` (a URL by name, in which `%d` becomes another number each time and `%t` the turn's), `turns`
 * times in turn. Rows of { peer, turn, took_us, ends }.
 */
export async function bursts(session, { targets, count, turns, first, pause = '200ms' }) {
  const names = Object.keys(targets);
  const args = ['-count', String(count), '-turns', String(turns), '-first', String(first), '-pause', pause, ...Object.values(targets)];
  const [program, ...rest] = asOtherMachines([burstBinary, ...args]);
  const rows = JSON.parse(await session.run(program, rest, { name: 'burst' }));
  return rows.map(({ target, ...row }) => ({ peer: names[target], ...row }));
}
