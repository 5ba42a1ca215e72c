// Waiting for something to become so, instead of sleeping and hoping. Knows nothing of what is waited for.
import { setTimeout as sleep } from 'node:timers/promises';

/** Long: a machine under load is slow, and a test that fails has time. */
const PATIENCE = 60_000;

/** Calls `look` until it returns something truthy, and resolves with that; an error that it throws is the reason in the end. */
export async function eventually(what, look) {
  const until = performance.now() + PATIENCE;
  let last;
  do {
    try {
      const seen = await look();
      if (seen) return seen;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await sleep(10);
  } while (performance.now() < until);
  throw new Error(`waited for ${what} in vain`, { cause: last });
}
