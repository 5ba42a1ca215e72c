// A React element as one piece of HTML, with all that it waits for. Knows no Hypernova markup.
import { Writable } from 'node:stream';
import type { ReactElement } from 'react';
import * as server from 'react-dom/server';
import type { Island, ReactOptions } from './react-options.js';

/**
 * `signal` or the time limit ends the waiting: what is still missing then comes as its fallback, and the browser renders it.
 * Where there is not even a frame around it, or the frame threw, this fails.
 */
export async function renderWhole(element: ReactElement, island: Island, options: ReactOptions, signal?: AbortSignal): Promise<string> {
  if (!('renderToPipeableStream' in server)) throw new TypeError('renderReactAsync needs React 18 or later; renderReact works with this one');
  signal?.throwIfAborted();
  const { timeLimit = 0, onError } = options;
  const patience = new AbortController();
  const giveUp = () => patience.abort(signal?.reason);
  const timer = timeLimit > 0 ? setTimeout(() => patience.abort(new Error(`not rendered within ${timeLimit} ms`)), timeLimit) : undefined;
  signal?.addEventListener('abort', giveUp);
  try {
    return await collect(await ready(element, island, onError, patience.signal));
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
      // A whole document in order: what is ready goes in its place however long it is, and no inline script moves it there later.
      progressiveChunkSize: Number.MAX_SAFE_INTEGER,
      onShellReady: () => (framed = true),
      onShellError: reject,
      onAllReady: () => resolve(stream),
      ...(onError && { onError: (error: unknown) => void onError(error, island) }),
    });
    const giveUp = () => {
      stream.abort(end.reason);
      if (!framed) reject(end.reason); // React 18 says nothing here
    };
    // Behind React's own first turn: a busy process is no reason to go without what can be rendered at once.
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
