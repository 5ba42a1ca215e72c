// Finds the process that serves after `hostler upgrade`, through its admin listener. Does not know how Hostler was
// started.

/**
 * The process that took over from `ended`, if there is one. Only a Hostler that could not start ends with a `code` above 0. It has no
 * successor: what answers is another Hostler, which may have its port.
 */
export async function successorOf(ended, admin, code = 0) {
  if (code > 0) return undefined;
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
