// A small random generator with a seed: the same seed gives the same page on every machine and in every worker.

/** mulberry32: 32 bits of state, enough for pictures and prices. */
export function seeded(seed) {
  let state = seed >>> 0;
  function unit() {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }
  return {
    unit,
    between: (low, high) => low + unit() * (high - low),
    whole: (low, high) => Math.floor(low + unit() * (high - low + 1)),
    pick: (list) => list[Math.floor(unit() * list.length)],
    chance: (share) => unit() < share,
  };
}
