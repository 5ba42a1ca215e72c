// Finds the process that serves after `hostler upgrade`, through its admin listener. Does not know how Hostler was
// started.

/** The process that took over from `ended`, if there is one. */
export async function successorOf(ended, admin) {
  try {
    const answer = await fetch(`${admin}/status`, { signal: AbortSignal.timeout(5_000) });
    const { pid } = await answer.json();
    return pid !== ended && isAlive(pid) ? pid : undefined;
  } catch {
    return undefined;
  }
}

export function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
