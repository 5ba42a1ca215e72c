// /api as seen from the page's own address, for when nobody stands in front who routes it. Only reads.
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
  // Whoever leaves in the middle, there is nobody left to tell.
  await pipeline(Readable.fromWeb(answer.body), response).catch(() => {});
}
