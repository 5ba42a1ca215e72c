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

/** The median with its spread. */
export function summary(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), count: values.length };
}

/**
 * How `one` compares with `other`, from pairs measured in the same round. Drift of the machine between rounds has no effect on
 * a pair, but it has on two medians. A round without one of the sides has no pair.
 */
export function pairedRatio(rows, { one, other, value }) {
  const rounds = [...new Set(rows.map((row) => row.round))].sort((a, b) => a - b);
  const find = (round, peer) => rows.find((row) => row.round === round && row.peer === peer);
  const ratios = rounds.flatMap((round) => {
    const pair = [find(round, one), find(round, other)];
    return pair.every(Boolean) ? [value(pair[0]) / value(pair[1])] : [];
  });
  return ratios.length === 0 ? null : summary(ratios);
}

/** A summary as text. Example: `1.012 (0.99 to 1.04)`. */
export function summaryText({ median: middle, min, max }, digits = 2) {
  return `${middle.toFixed(digits)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
}
