// Which of many pages are asked for, as the web does it: a few very often, most hardly ever. Knows numbers only.

/** `count` draws of a number from 0 to `keys` - 1, the k-th likeliest with a weight of 1 / k^exponent; the same seed draws the same. */
export function zipf({ keys, exponent, count, seed }) {
  const sums = new Float64Array(keys);
  let total = 0;
  for (let k = 0; k < keys; k += 1) sums[k] = total += 1 / (k + 1) ** exponent;
  const random = mulberry32(seed);
  // Ranks are scattered over the numbers, or the likeliest would also be the ones that were made first.
  const names = shuffled(keys, random);
  return Array.from({ length: count }, () => names[firstAbove(sums, random() * total)]);
}

/** The share of the draws that the `count` likeliest get: more is no hit where no more pages fit. */
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

/** A small generator with a seed: Math.random has none. */
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
