// Asks the API, within a time, once more if the connection failed. Knows no page.

/**
 * Gives a function from a path to an answer (see `Data`); it never rejects, for that an API is down is an answer too.
 * `timeoutFor(path)`: milliseconds, or undefined for as long as `signal` lets it.
 */
export function apiClient({ url, signal, timeoutFor }) {
  return async (path) => {
    const timeout = timeoutFor(path);
    const both = timeout === undefined ? signal : either(signal, AbortSignal.timeout(timeout));
    try {
      return await read(await withOneRetry(() => fetch(url + path, { signal: both, headers: { accept: 'application/json' } }), both));
    } catch (error) {
      if (!signal.aborted) console.error(`the API gave no answer to ${path}: ${error.cause?.code ?? error.message}`);
      return { ok: false, status: 503 };
    }
  };
}

async function read(response) {
  if (response.ok) return { ok: true, value: await response.json() };
  await response.body?.cancel(); // or the connection stays taken
  if (response.status >= 500) console.error(`the API answered ${response.status} to ${response.url}`);
  return { ok: false, status: response.status };
}

/** A kept connection may have been closed at the other end just now; that is no fault of the request. Slowness would be. */
async function withOneRetry(ask, signal) {
  try {
    return await ask();
  } catch (error) {
    if (signal.aborted) throw error;
    return ask();
  }
}

/** AbortSignal.any, which Node 20 has only from 20.3 on. */
function either(...signals) {
  const controller = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true, signal: controller.signal });
  }
  return controller.signal;
}
