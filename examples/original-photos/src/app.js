// The HTTP side: routes requests and writes each result. Knows the upstream only through Lookups.
import { Flickr } from './flickr.js';
import { Lookups } from './lookups.js';
import { createPage, createRefusalPage } from './page.js';
import { Refusal } from './refusal.js';
import { createReport } from './report.js';
import { describe } from './sizes.js';

// Ids are opaque and their form may change (https://www.flickr.com/services/api/misc.overview.html), so letters are
// allowed.
const ID = /^[A-Za-z0-9_-]{1,64}$/;
const VIEW = '/view/';
const LEFT = new Error('the client has left');

export function createApp(settings, report = createReport()) {
  const flickr = new Flickr(settings);
  const lookups = new Lookups({
    ask: (id, lookup) => flickr.photo(id, lookup).catch((error) => {
      report(id, error);
      throw error;
    }),
    calls: settings.upstreamCalls,
    cache: settings.cache,
  });
  const page = createPage(settings);
  const refusalPage = createRefusalPage();

  return (request, response) => {
    answer({ request, lookups, page, origins: settings.origins, left: leaving(response) }).then(
      (said) => send(request, response, forReader(said, request, refusalPage)),
      (error) => {
        if (error === LEFT) return;
        report('', error);
        send(request, response, refuse(new Refusal('internal')));
      },
    );
  };
}

/**
 * A browser that loads a page names `text/html`. It gets a refusal as a page. That page has the id of this request, so no cache
 * may send it to another client.
 */
function forReader(said, request, refusalPage) {
  if (!said.refusal || !request.headers.accept?.includes('text/html')) return said;
  const { headers, body } = refusalPage(said.refusal, request.headers['x-request-id']);
  const reuse = said.headers['cache-control'].replace('public', 'private');
  return { ...said, headers: { ...said.headers, ...headers, 'cache-control': reuse }, body };
}

async function answer({ request, lookups, page, origins, left }) {
  const [path, query] = request.url.split('?', 2);
  const about = subject(path);
  if (!about) return refuse(new Refusal('nothing_here'));
  if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(new Refusal('method_not_allowed'), { ...about, headers: { allow: 'GET, HEAD' } });
  if (about.health) return { status: 200, headers: { 'content-type': TEXT, 'cache-control': 'no-store' }, body: 'ok\n' };
  if (about.page) return home(page, new URLSearchParams(query).get('id'));
  if (!ID.test(about.id)) return refuse(new Refusal('bad_id'), about);
  const found = await lookups.find(about.id, left);
  if (found.refusal) return refuse(found.refusal, { ...about, headers: freshness(found) });
  return about.json ? sizes(describe(about.id, found.photo, origins), found) : redirect(found);
}

function subject(path) {
  if (path === '/' || path === '/view' || path === VIEW) return { page: true };
  if (path === '/healthz') return { health: true };
  if (!path.startsWith(VIEW)) return undefined;
  const name = path.slice(VIEW.length);
  return name.endsWith('.json') ? { id: name.slice(0, -'.json'.length), json: true } : { id: name };
}

/** Without scripts the page's form requests `/view/?id=...`. */
function home(page, id) {
  if (id === null) return { status: 200, ...page };
  if (!ID.test(id.trim())) return refuse(new Refusal('bad_id'));
  return { status: 303, headers: { location: VIEW + id.trim(), 'content-type': TEXT, 'cache-control': 'no-store' }, body: `See ${VIEW}${id.trim()}\n` };
}

function redirect(found) {
  const { picture } = found.photo;
  if (!picture) return refuse(new Refusal('no_picture'), { headers: freshness(found) });
  const headers = { location: picture.source, 'content-type': TEXT, ...freshness(found) };
  return { status: 302, headers, body: `${picture.label}, ${picture.width} x ${picture.height}: ${picture.source}\n` };
}

function sizes(photo, found) {
  return { status: 200, headers: { 'content-type': JSON_TYPE, ...freshness(found) }, body: toJson(photo) };
}

function refuse(refusal, { json, headers } = {}) {
  const { status, code, message, retryAfter } = refusal;
  return {
    status,
    ...(json ? {} : { refusal }),
    headers: {
      'content-type': json ? JSON_TYPE : TEXT,
      'cache-control': 'no-store',
      ...(json ? {} : { vary: 'accept' }), // a browser gets a page
      ...(retryAfter ? { 'retry-after': String(retryAfter) } : {}),
      ...headers,
    },
    body: json ? toJson({ error: code, message }) : `${message}\n`,
  };
}

/**
 * How long a response is valid and where it comes from, in the terms of Cache-Status (RFC 9211). A negative `ttl` means that it
 * is expired. The field has its own name, because Hostler removes a worker's Cache-Status.
 */
function freshness({ from, seconds, hides, refusal }) {
  const status = from === 'kept' ? `hit; ttl=${seconds}` : `fwd=miss${from === 'flight' ? '; collapsed' : ''}`;
  const reuse = hides ? 'no-cache' : refusal && !refusal.lasting ? 'no-store' : `public, max-age=${seconds}`;
  return { 'cache-control': reuse, 'lookup-status': `${status}${hides ? `; detail=${hides.code}` : ''}` };
}

const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';
const toJson = (value) => `${JSON.stringify(value, null, 2)}\n`;

function send(request, response, { status, headers, body }) {
  response.writeHead(status, { 'x-content-type-options': 'nosniff', ...headers, 'content-length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Rejects when the client has left before its response. */
function leaving(response) {
  const left = new Promise((_, reject) => {
    response.once('close', () => {
      if (!response.writableFinished) reject(LEFT);
    });
  });
  left.catch(() => {}); // it may reject while nothing awaits it
  return left;
}
