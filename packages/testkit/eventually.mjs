// Waits until a condition holds, instead of sleeping for a guessed time. Knows nothing of the condition.
import { setTimeout as sleep } from 'node:timers/promises';

/** Long, because a machine under load is slow. Only a failing test waits this long. */
const TIME_LIMIT = 60_000;

/**
 * Calls `look` until it returns a truthy value, and resolves with that. If the time is up, an error that `look` has thrown is the reason.
 * The text of `context` is printed then, such as the output of a process.
 */
export async function eventually(what, look, context = () => '') {
  const until = performance.now() + TIME_LIMIT;
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
  throw new Error(`waited for ${what}, which did not come\n${context()}`, { cause: last });
}
