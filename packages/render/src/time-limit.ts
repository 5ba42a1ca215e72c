// The timer of a time limit that an option sets. Does not know what it limits.

/** Node fires a timer after a millisecond if its time is longer than this: 24 days. */
const LONGEST = 2 ** 31 - 1;

/** Calls `late` after so many milliseconds. Without a limit there is no timer: with 0, and with `Infinity` or any time beyond Node's timers. */
export function startLimit(ms: number, late: () => void): NodeJS.Timeout | undefined {
  return ms > 0 && ms <= LONGEST ? setTimeout(late, ms) : undefined;
}
