// Flickr's documented REST API, as far as this example needs it: methods, keys, formats, failures and the quota. Sources:
// https://www.flickr.com/services/api/ (flickr.photos.getSizes, request.rest, response.json, misc.overview) and
// /services/developer/api/ for the quota; for HTTP 429: https://github.com/sybrenstuvel/flickrapi/issues/135.
import { setTimeout as delay } from 'node:timers/promises';
import { dimensions, listed } from './catalogue.js';
import { FAULTS, faultOf } from './faults.js';
import { draw } from './picture.js';
import { write } from './formats.js';

const HOUR_MS = 3_600_000;
const REST = /^\/services\/rest\/?$/;
const PICTURE = /^\/services\/pictures\/([\w-]+?)(_[a-z])?\.svg$/;

/**
 * A request listener. `keys` are valid. Every response takes `latency` ms. A key has `perHour` calls (0: no limit). `onCall({
 * id, key, over, left })` is called for each call; later `over` becomes true, and `left` if the client closed the connection
 * before.
 */
export function createStandIn({ keys = ['demo'], latency = 0, perHour = 3600, onCall = () => {}, now = () => performance.now() } = {}) {
  const quota = createQuota({ perHour, now });
  return (request, response) => {
    const base = `http://${request.headers.host ?? 'localhost'}`;
    if (!URL.canParse(request.url, base)) return plain(response, 400, 'not an address'); // such as with Host: 1.2.3.4.5
    const url = new URL(request.url, base);
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(response, 405, 'only GET here: this is a stand-in');
    const picture = PICTURE.exec(url.pathname);
    if (picture) return sendPicture(response, picture[1], picture[2] ?? '');
    if (!REST.test(url.pathname)) return plain(response, 404, "nothing here: this is a stand-in for Flickr's /services/rest/");
    const call = { id: url.searchParams.get('photo_id') ?? '', key: url.searchParams.get('api_key'), over: false, left: false };
    response.once('close', () => Object.assign(call, { over: true, left: !response.writableFinished }));
    onCall(call);
    rest({ url, call, response, keys, latency, quota }).catch((error) => response.destroy(error));
  };
}

async function rest({ url, call, response, keys, latency, quota }) {
  const format = url.searchParams.get('format') ?? 'rest';
  const callback = url.searchParams.get('nojsoncallback') === '1' ? null : (url.searchParams.get('jsoncallback') ?? 'jsonFlickrApi');
  const method = url.searchParams.get('method') ?? '';
  const say = (answer) => write(response, { format, callback, answer });
  if (format !== 'rest' && format !== 'json') return write(response, { format: 'rest', answer: fail(111, `Format "${format}" not found`) });
  if (method !== 'flickr.photos.getSizes') return say(fail(112, `Method "${method}" not found`));
  if (!keys.includes(call.key)) return say(fail(100, 'Invalid API Key (Key has invalid format)'));
  const wait = quota(call.key);
  if (wait !== undefined) return tooMany(response, wait);
  const fault = faultOf(call.id);
  const photo = () => found(call.id, url.origin);
  const answer = fault ? undefined : /^\d{1,20}$/.test(call.id) ? photo() : fail(1, 'Photo not found');
  if (latency > 0) await delay(latency);
  return fault ? FAULTS[fault]({ id: call.id, url, response, say, fail, photo }) : say(answer);
}

const fail = (code, message) => ({ stat: 'fail', code, message });

function found(id, origin) {
  const size = listed(id).map(({ label, suffix, part, width, height, number }) => ({
    label,
    width: number ? width : String(width),
    height: number ? height : String(height),
    source: `${origin}/services/pictures/${id}${suffix}.svg`,
    url: `${origin}/services/pictures/${id}${suffix}.svg#${part}`,
    media: 'photo',
  }));
  return { sizes: { canblog: 0, canprint: 0, candownload: 1, size }, stat: 'ok' };
}

/** Calls per key and hour. Returns the seconds to wait once they are used up. */
function createQuota({ perHour, now }) {
  const used = new Map();
  return (key) => {
    if (perHour === 0) return undefined;
    const known = used.get(key);
    const window = known && known.until > now() ? known : { calls: 0, until: now() + HOUR_MS };
    used.set(key, window);
    window.calls += 1;
    return window.calls > perHour ? Math.ceil((window.until - now()) / 1000) : undefined;
  };
}

function tooMany(response, wait) {
  response.writeHead(429, { 'content-type': 'text/html', 'retry-after': String(wait) });
  response.end('<html><body><h1>429 Too Many Requests</h1>\nYou have sent too many requests in a given amount of time.\n</body></html>\n');
}

function sendPicture(response, id, suffix) {
  const size = dimensions(id, suffix);
  if (!size) return plain(response, 404, 'the stand-in has no such picture');
  const body = draw(id, size);
  response.writeHead(200, { 'content-type': 'image/svg+xml', 'content-length': Buffer.byteLength(body), 'cache-control': 'public, max-age=86400' });
  response.end(body);
}

function plain(response, status, text) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}
