// Runs the generator of bursts (bench/load/burst). Knows the generator, not the server under test.
import { burstBinary } from './tools.mjs';

/** The generator stands for other machines, as the one of open loops does (see there). */
const asOtherMachines = (command) => (process.getuid() === 0 ? ['nice', '-n', '-10', ...command] : command);

/**
 * Sends `count` requests at once to each of `targets`, one target after another, `turns` times. `targets` are URLs by name; in
 * them `%d` becomes a new number in each request, and `%t` the number of the turn. Returns rows of { peer, turn, took_us, ends
 * }, and with `each` also `times_us`: the time of every request by how it ended.
 */
export async function bursts(session, { targets, count, turns, first = 1, pause = '200ms', each = false }) {
  const names = Object.keys(targets);
  const args = ['-count', String(count), '-turns', String(turns), '-first', String(first), '-pause', pause, ...Object.values(targets)];
  const [program, ...rest] = asOtherMachines([burstBinary, ...args]);
  const rows = JSON.parse(await session.run(program, rest, { name: 'burst' }));
  return rows.map(({ target, times_us, ...row }) => ({ peer: names[target], ...row, ...(each ? { times_us } : {}) }));
}
