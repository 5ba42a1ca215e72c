// Medians, percentiles and ratios of same-round pairs. Knows numbers only, not what was measured.

/** The middle value; the mean of the two middle ones for an even count. Infinity is a value like any other. */
export function median(values) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The nearest-rank percentile: the smallest value that at least `percent` per cent of the values do not exceed. */
export function percentile(values, percent) {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  // Without the small subtraction 0.999 * 1000 is 999.0000000000001 and the rank is one too high.
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length - 1e-9));
  return sorted[rank - 1];
}

/**
 * A high percentile over several samples, each given by its size and its largest values. Exact as long as these include every
 * value above the percentile. NaN if there are too few.
 */
export function pooledPercentile(samples, percent) {
  const total = samples.reduce((sum, { size }) => sum + size, 0);
  const fromTop = total - Math.max(1, Math.ceil((percent / 100) * total - 1e-9));
  const largest = Float64Array.from(samples.flatMap((sample) => sample.largest)).sort().reverse();
  return fromTop < largest.length ? largest[fromTop] : NaN;
}

/** Jain's index of fairness: 1 if all have the same, 1 / n if one of n has everything. */
export function jainIndex(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum ** 2 / (values.length * values.reduce((total, value) => total + value ** 2, 0));
}

/** The median with its spread. */
export function summary(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), count: values.length };
}

/**
 * How `one` compares with `other`, from pairs measured in the same round. Drift of the machine between rounds has no effect on
 * a pair, but it has on two medians. A round without one of the sides has no pair.
 */
export function pairedRatio(rows, pair) {
  const ratios = pairedRatios(rows, pair);
  return ratios.length === 0 ? null : { ...summary(ratios), values: ratios };
}

/**
 * How `one` compares with the best of `others` in each round, which is not the same one in each: the ratio of a cost is largest with it. A
 * round without one of them does not count.
 */
export function ratioToBest(rows, { one, others, value }) {
  const ratios = roundsOf(rows).flatMap((round) => {
    const own = rows.filter((row) => row.round === round);
    const all = others.flatMap((other) => pairedRatios(own, { one, other, value }));
    return all.length > 0 && all.length === others.length ? [Math.max(...all)] : [];
  });
  return ratios.length === 0 ? null : { ...summary(ratios), values: ratios };
}

const roundsOf = (rows) => [...new Set(rows.map((row) => row.round))].sort((a, b) => a - b);

function pairedRatios(rows, { one, other, value }) {
  const rounds = roundsOf(rows);
  const find = (round, peer) => rows.find((row) => row.round === round && row.peer === peer);
  return rounds.flatMap((round) => {
    const pair = [find(round, one), find(round, other)];
    return pair.every(Boolean) ? [value(pair[0]) / value(pair[1])] : [];
  });
}

/** So unlikely must the agreement of the rounds be, if each were the toss of a coin. */
const AGREEMENT = 1 / 16;
/** Fewer rounds never agree. */
export const FEWEST = 4;

/**
 * Whether the rounds agree that a target holds (true) or does not (false), by the sign test; null if they disagree. Of 4 or 5
 * rounds all must agree, of 7 or 8 all but one.
 */
export function agreement(values, holds) {
  const held = values.filter((value) => holds(value)).length;
  const most = Math.max(held, values.length - held);
  return values.length > 0 && atLeast(most, values.length) <= AGREEMENT ? held === most : null;
}

/** The probability of `least` or more heads in `tosses` tosses of a coin. */
function atLeast(least, tosses) {
  let [ways, sum] = [1, 0];
  for (let heads = 0; heads <= tosses; heads += 1) {
    if (heads >= least) sum += ways;
    ways = (ways * (tosses - heads)) / (heads + 1);
  }
  return sum / 2 ** tosses;
}

/** A summary as text. Example: `1.012 (0.99 to 1.04)`. */
export function summaryText({ median: middle, min, max }, digits = 2) {
  return `${middle.toFixed(digits)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
}
