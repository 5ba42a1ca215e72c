// Requests to the API, with a time limit, and with one retry if the connection failed. Knows no page.

/**
 * A function from a path to an answer (see `Data`). It never rejects, because an unavailable API is an answer too.
 * `timeoutFor(path)`: milliseconds, or undefined for no limit other than `signal`.
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
  await response.body?.cancel(); // otherwise the connection stays in use
  if (response.status >= 500) console.error(`the API answered ${response.status} to ${response.url}`);
  return { ok: false, status: response.status };
}

/** A kept-alive connection may have been closed by the other end at this moment, so the request is sent again. After a timeout it is not. */
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
