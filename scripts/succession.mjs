// Who serves after `hostler upgrade`, asked of its admin listener. Knows nothing of how Hostler was started.

/** The process that took over from `ended`, if one did. */
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
