// One page, streamed: its shell as soon as the status is known, and each late part when it is ready. Knows React and
// HTTP, no page.
import { randomBytes } from 'node:crypto';
import { renderToPipeableStream } from 'react-dom/server';
import { Data } from '../app/data.jsx';
import { routeOf, statusOf } from '../app/route.js';
import { Site } from '../app/site.jsx';
import { apiClient } from './api.js';

const POLICY =
  "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const BOTS = /bot\b|crawl|spider|slurp|facebookexternalhit|embedly|preview/i;

/** `built`: `{ files, script, shell }`, the output of the build for the browser. */
export async function sendPage({ request, response, url, settings, built }) {
  const { base } = settings;
  const began = performance.now();
  const gone = new AbortController();
  response.once('close', () => gone.abort());

  const at = url.pathname + url.search;
  const route = routeOf(at, base);
  // The later data has no limit of its own: it is awaited until the render is given up, which ends the response and the
  // fetch.
  const timeoutFor = (path) => (path === route.needs ? settings.needsWithin : undefined);
  const data = new Data(apiClient({ url: settings.api, signal: gone.signal, timeoutFor }));
  const needs = route.needs && data.get(route.needs);
  for (const path of route.later) data.get(path); // requested now, read later
  const answer = await needs;
  if (gone.signal.aborted) return;

  const asked = performance.now();
  const nonce = randomBytes(16).toString('base64');
  const site = <Site at={at} base={base} data={data} from="server" files={built.files} />;
  stream(site, {
    request,
    response,
    gone: gone.signal,
    nonce,
    settings,
    built,
    isWhole: url.searchParams.has('bot') || BOTS.test(request.headers['user-agent'] ?? ''),
    head: () => ({
      status: statusOf(route, answer),
      timing: `api;dur=${(asked - began).toFixed(1)}, shell;dur=${(performance.now() - asked).toFixed(1)}`,
    }),
  });
}

function stream(site, { request, response, gone, nonce, settings, built, isWhole, head }) {
  const send = () => {
    if (gone.aborted) return;
    const { status, timing } = head();
    const later = status === 503 && { 'retry-after': '5', 'cache-control': 'no-store' };
    response.writeHead(status, { ...headersFor(nonce), 'server-timing': timing, ...later });
    if (request.method === 'HEAD') {
      response.end();
      abort();
    } else pipe(response);
  };
  let late = false;
  const { pipe, abort } = renderToPipeableStream(site, {
    nonce,
    bootstrapModules: [`${settings.base}/assets/${built.script}`],
    // Everything that is ready when the shell is sent is written into it, however long, for readers without scripts.
    progressiveChunkSize: Infinity,
    onShellReady: () => isWhole || send(),
    onAllReady: () => {
      clearTimeout(limit);
      if (isWhole) send();
    },
    onShellError: () => {
      clearTimeout(limit);
      sendShell({ response, status: 500, built });
    },
    onError: (error) => {
      if (gone.aborted || request.method === 'HEAD') return undefined;
      console.error(late ? `${request.url}: left to the browser after ${settings.renderWithin} ms` : error);
      return late ? 'late' : 'broken'; // the browser learns no more than this
    },
  });
  const limit = setTimeout(() => {
    late = true;
    abort();
  }, settings.renderWithin);
  gone.addEventListener('abort', () => {
    clearTimeout(limit);
    abort();
  });
}

/** Sends the shell, from which the browser renders the page itself. The browser may succeed where this process has failed. */
export function sendShell({ response, status, built }) {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(built.shell),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(built.shell);
}

function headersFor(nonce) {
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'private, no-cache', // each page has its own nonce
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'strict-origin-when-cross-origin',
    'content-security-policy': `${POLICY}; script-src 'nonce-${nonce}'`,
  };
}
