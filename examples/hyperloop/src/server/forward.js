// /api under the page's own address, for when no proxy in front routes it. Only GET.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export async function forward({ response, url, api }) {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const answer = await fetch(api + url.pathname.slice('/api'.length) + url.search, { signal: gone.signal }).catch(() => undefined);
  if (gone.signal.aborted) return;
  if (!answer) {
    response.writeHead(502, { 'content-type': 'application/json' }).end('{"error":"the API does not answer"}');
    return;
  }
  response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/octet-stream', 'cache-control': 'no-cache' });
  if (!answer.body) return void response.end();
  // If the client has left, the error is ignored.
  await pipeline(Readable.fromWeb(answer.body), response).catch(() => {});
}
