// Writes figures, tables and verdicts for RESULTS.md. Knows Markdown, not the scenarios.
import { duration } from '../lib/progress.mjs';
import { FEWEST, agreement } from '../lib/statistics.mjs';

export function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

/** Three significant digits, with separators for thousands. A dash for a value that never came. */
export function number(value, digits) {
  if (value === null || !Number.isFinite(value)) return '–';
  const fixed = digits ?? (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
  return value.toLocaleString('en-GB', { minimumFractionDigits: fixed, maximumFractionDigits: fixed });
}

/** `0.87 (0.80 .. 0.95)`: the median and its spread. */
export function spread(summary, digits) {
  if (!summary) return 'not measured';
  return `${number(summary.median, digits)} (${number(summary.min, digits)} .. ${number(summary.max, digits)})`;
}

export function verdict(summary, holds) {
  if (!summary) return 'not measured';
  return holds(summary) ? 'met' : '**not met**';
}

/**
 * A verdict only if the rounds agree. `summary` has the `values` of the rounds. Where two rounds say yes and three say no, the
 * median would be a toss of a coin.
 */
export function agreed(summary, holds) {
  if (!summary) return 'not measured';
  const isMet = agreement(summary.values, holds);
  if (isMet === null) return summary.values.length < FEWEST ? 'not decided: too few rounds' : 'not decided: rounds disagree';
  return isMet ? 'met' : '**not met**';
}

/** How `agreed` judges; a line of a list. */
export const AGREED = '* A verdict needs rounds that agree: all of 4 or 5 rounds, all but one of 7 or 8 (sign test, 1 in 16). Otherwise the target is not decided.';

/** The table of a part's targets. A target is [name, measured, wanted, verdict]. */
export function targetTable(targets) {
  return table(['target', 'measured', 'wanted', ''], targets);
}

/** The runs with errors, which are included in the figures. `cellName` returns what a run measured. */
export function troubles(rows, titles, cellName) {
  const bad = rows.flatMap(({ round, peer, errors = {}, failed = 0, refused = 0, ...cell }) => {
    const kinds = Object.entries({ ...errors, failed, refused }).filter(([, count]) => count > 0).map(([kind, count]) => `${count} ${kind}`);
    return kinds.length > 0 ? [`* round ${round}, ${cellName(cell)}, ${titles[peer] ?? peer}: ${kinds.join(', ')}`] : [];
  });
  return bad.length === 0 ? 'No run had an error.' : `**Runs with errors (kept in the figures):**\n\n${bad.join('\n')}`;
}

/** Where and on what the figures were measured, as one paragraph. */
export function origin({ date, commit, dirty, binary, machine, versions }, names) {
  const listed = names.filter((name) => versions[name]).map((name) => `${NAMES[name]} ${versions[name]}`);
  const changed = `${dirty ? ' **with uncommitted changes**' : ''}${binary ? ' **with a program that `HOSTLER_BIN` named**' : ''}`;
  return `Measured ${date.slice(0, 16).replace('T', ' ')} UTC at commit \`${commit.slice(0, 12)}\`${changed} on ${machine.cores} cores of `
    + `${machine.cpu}, ${machine.memory_gib} GiB, ${machine.system}, kernel ${machine.kernel}. ${listed.join(', ')}.`;
}

const NAMES = { hostler: 'Hostler', haproxy: 'HAProxy', nginx: 'nginx', varnish: 'Varnish', memcached: 'memcached', fastify: 'Fastify', maxmind: 'maxmind', node: 'Node', pm2: 'PM2', wrk: 'wrk', vegeta: 'vegeta', h2load: 'h2load', ab: 'ab', go: 'Go' };

/** How figures of several rounds become one; a line of a list. */
export const PAIRED = '* Peers take turns within each round. A ratio is the median of pairs from the same round. The smallest and the largest pair are in parentheses.';
export const CPU = "* CPU is the scheduler's run time of all processes of the peer.";

export const rounds = (count) => (count === 1 ? '1 round' : `${count} rounds`);
export const seconds = duration;
