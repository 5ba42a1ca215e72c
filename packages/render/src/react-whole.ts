// Renders a React element to one piece of HTML, with everything that it waits for. Knows no Hypernova markup.
import { Writable } from 'node:stream';
import type { ReactElement } from 'react';
import * as server from 'react-dom/server';
import type { Island, ReactOptions } from './react-options.js';
import { startLimit } from './time-limit.js';

/**
 * Renders the element. `signal` or the time limit ends the wait: then missing parts are sent as their fallbacks, and the
 * browser renders them. Rejects if there is nothing around the missing parts yet, or if that part threw.
 */
export async function renderWhole(element: ReactElement, island: Island, options: ReactOptions, signal?: AbortSignal): Promise<string> {
  if (!('renderToPipeableStream' in server)) throw new TypeError('renderReactAsync needs React 18 or later; renderReact works with this one');
  signal?.throwIfAborted();
  const { timeLimit = 0, onError } = options;
  const waiting = new AbortController();
  const giveUp = () => waiting.abort(signal?.reason);
  const timer = startLimit(timeLimit, () => waiting.abort(new Error(`not rendered within ${timeLimit} ms`)));
  signal?.addEventListener('abort', giveUp);
  try {
    return await collect(await ready(element, island, onError, waiting.signal));
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}

function ready(element: ReactElement, island: Island, onError: ReactOptions['onError'], end: AbortSignal): Promise<server.PipeableStream> {
  return new Promise((resolve, reject) => {
    let framed = false;
    const stream = server.renderToPipeableStream(element, {
      identifierPrefix: island.id,
      // The whole document in order: a part that is ready is written in its place, however long it is, and no inline
      // script moves it later.
      progressiveChunkSize: Number.MAX_SAFE_INTEGER,
      onShellReady: () => (framed = true),
      onShellError: reject,
      onAllReady: () => resolve(stream),
      ...(onError && { onError: (error: unknown) => void onError(error, island) }),
    });
    const giveUp = () => {
      stream.abort(end.reason);
      if (!framed) reject(end.reason); // React 18 does not report this
    };
    // After React's own first turn, so that a busy process still renders what is ready at once.
    end.addEventListener('abort', () => setImmediate(giveUp));
  });
}

function collect(stream: server.PipeableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const sink = new Writable({
      write(chunk: Buffer, _encoding, done) {
        chunks.push(chunk);
        done();
      },
    });
    sink.once('error', reject);
    sink.once('finish', () => resolve(Buffer.concat(chunks).toString()));
    stream.pipe(sink);
  });
}
