// Random choice of pages with the distribution of the web: a few pages very often, most of them hardly ever. Knows only
// numbers.

/** `count` random numbers from 0 to `keys` - 1. The k-th most frequent one has a weight of 1 / k^exponent. The same seed gives the same numbers. */
export function zipf({ keys, exponent, count, seed }) {
  const sums = new Float64Array(keys);
  let total = 0;
  for (let k = 0; k < keys; k += 1) sums[k] = total += 1 / (k + 1) ** exponent;
  const random = mulberry32(seed);
  // The ranks are shuffled, otherwise the most frequent numbers would also be the smallest.
  const names = shuffled(keys, random);
  return Array.from({ length: count }, () => names[firstAbove(sums, random() * total)]);
}

/** The share of the `count` most frequent numbers. With room for this many pages, the hit rate cannot be higher. */
export function likeliest({ keys, exponent, count }) {
  let [some, all] = [0, 0];
  for (let k = 0; k < keys; k += 1) {
    const weight = 1 / (k + 1) ** exponent;
    all += weight;
    if (k < count) some += weight;
  }
  return some / all;
}

function firstAbove(sums, value) {
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sums[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function shuffled(count, random) {
  const list = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

/** A small random generator with a seed, which Math.random does not have. */
export function mulberry32(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
