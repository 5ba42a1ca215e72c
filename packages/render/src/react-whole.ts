// A React element as one piece of HTML, with all that it waits for. Knows no Hypernova markup.
import { Writable } from 'node:stream';
import type { ReactElement } from 'react';
import * as server from 'react-dom/server';
import type { Island, ReactOptions } from './react-options.js';

/**
 * `signal` ends the waiting: what is still missing then comes as its fallback, and the browser renders it.
 * Where there is not even a frame around it, or the frame threw, this fails.
 */
export function renderWhole(element: ReactElement, island: Island, options: ReactOptions, signal?: AbortSignal): Promise<string> {
  if (!('renderToPipeableStream' in server)) {
    return Promise.reject(new TypeError('renderReactAsync needs React 18 or later; renderReact works with this one'));
  }
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    let framed = false;
    const stop = () => {
      stream.abort(signal?.reason);
      if (!framed) reject(signal?.reason); // React 18 says nothing here
    };
    const stream = server.renderToPipeableStream(element, {
      identifierPrefix: island.id,
      // A whole document in order: what is ready goes in its place however long it is, and no inline script moves it there later.
      progressiveChunkSize: Number.MAX_SAFE_INTEGER,
      onShellReady: () => (framed = true),
      onShellError: reject,
      onAllReady: () => {
        signal?.removeEventListener('abort', stop);
        collect(stream).then(resolve, reject);
      },
      ...(options.onError && { onError: (error: unknown) => void options.onError?.(error, island) }),
    });
    signal?.addEventListener('abort', stop, { once: true });
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
