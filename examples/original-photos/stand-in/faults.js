// The failures of an upstream, by photo id: `fault-NAME` or `fault-NAME-anything`. Knows no quota and no keys.
import { setTimeout as delay } from 'node:timers/promises';

const HTML = '<html><body><h1>Bad, bad panda!</h1></body></html>\n';
const seen = new Set();
const MOST_SEEN = 10_000;
const LONGEST_MS = 20_000;

export function faultOf(id) {
  const [, name] = /^fault-([a-z0-9_]+)(?:-|$)/.exec(id) ?? [];
  return name && Object.hasOwn(FAULTS, name) ? name : undefined;
}

/** Each function gets `{ id, url, response, say, fail, photo }`. Names have no hyphen, because the rest of the id begins there. */
export const FAULTS = {
  // As documented: `stat: fail` with a code, and HTTP's 429.
  private: ({ say, fail }) => say(fail(2, 'Permission denied')),
  key: ({ say, fail }) => say(fail(100, 'Invalid API Key (Key has expired)')),
  unavailable: ({ say, fail }) => say(fail(105, 'Service currently unavailable')),
  write: ({ say, fail }) => say(fail(106, 'Write operation failed')),
  format: ({ say, fail }) => say(fail(111, 'Format "json" not found')),
  url: ({ say, fail }) => say(fail(116, 'Bad URL found')),
  code: ({ say, fail }) => say(fail(4711, 'Something new')),
  busy: ({ response }) => status(response, 429, { 'retry-after': '7' }),
  busy_until: ({ response }) => status(response, 429, { 'retry-after': new Date(Date.now() + 90_000).toUTCString() }),
  busy_silent: ({ response }) => status(response, 429),

  // Invalid responses.
  http500: ({ response }) => status(response, 500),
  http503: ({ response }) => status(response, 503, { 'retry-after': '3' }),
  redirect: ({ url, response }) => status(response, 302, { location: `${url.origin}/elsewhere` }),
  html: ({ response }) => status(response, 200),
  script: ({ response, photo }) => status(response, 200, {}, `jsonFlickrApi(${JSON.stringify(photo())})`),
  cut: ({ response, photo }) => status(response, 200, {}, JSON.stringify(photo()).slice(0, -40)),
  null: ({ response }) => status(response, 200, {}, 'null'),
  nostat: ({ say, photo }) => say({ ...photo(), stat: undefined }),
  nosizes: ({ say }) => say({ sizes: {}, stat: 'ok' }),
  types: ({ say, photo }) => say(changed(photo(), { width: { much: true } })),
  endless: ({ response }) => endless(response),
  truncated: ({ response, photo }) => truncated(response, JSON.stringify(photo())),

  // Responses with wrong addresses.
  foreign: ({ say, photo }) => say(changed(photo(), { source: 'https://staticflickr.com.example.net/1_o.jpg' })),
  user: ({ say, photo }) => say(changed(photo(), { source: 'https://live.staticflickr.com@example.net/1_o.jpg' })),
  insecure: ({ say, photo }) => say(changed(photo(), { source: 'http://live.staticflickr.com/1/1_o.jpg' })),
  javascript: ({ say, photo }) => say(changed(photo(), { source: 'javascript:alert(1)' })),

  // Unusual photos.
  empty: ({ say }) => say({ sizes: { canblog: 0, canprint: 0, candownload: 0, size: [] }, stat: 'ok' }),
  small: ({ say, photo }) => say(without(photo(), 'Original')),
  video: ({ say, photo }) => say(withVideo(without(photo(), 'Original'))),
  film: ({ say, photo }) => say({ ...photo(), sizes: { ...photo().sizes, size: withVideo(photo()).sizes.size.filter(({ media }) => media === 'video') } }),

  // Failures of connections.
  reset: ({ response }) => response.socket.resetAndDestroy(),
  reset_once: ({ id, response, say, photo }) => (first(id) ? response.socket.resetAndDestroy() : say(photo())),
  fail_later: ({ id, response, say, photo }) => (first(id) ? say(photo()) : status(response, 500)),
  gone_later: ({ id, say, fail, photo }) => say(first(id) ? photo() : fail(1, 'Photo not found')),
  silent: ({ response }) => ends(response),
  slow: async ({ say, photo }) => {
    await delay(1500);
    say(photo());
  },
  drip: ({ response }) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{ "sizes": ');
    ends(response);
  },
};

/**
 * Ends the response after a time longer than any timeout. A response without an end would look like a hung worker to the
 * supervisor of this process.
 */
function ends(response) {
  const timer = setTimeout(() => response.destroy(), LONGEST_MS).unref();
  response.once('close', () => clearTimeout(timer));
}

function status(response, code, headers = {}, body = HTML) {
  response.writeHead(code, { 'content-type': 'text/html', ...headers });
  response.end(body);
}

/** Whether this id is requested for the first time. */
function first(id) {
  if (seen.has(id)) return false;
  if (seen.size >= MOST_SEEN) seen.clear();
  seen.add(id);
  return true;
}

const changed = (photo, change) => ({ ...photo, sizes: { ...photo.sizes, size: photo.sizes.size.map((size) => ({ ...size, ...change })) } });
const without = (photo, label) => ({ ...photo, sizes: { ...photo.sizes, size: photo.sizes.size.filter((size) => size.label !== label) } });

/** Flickr lists the files of a video beside its stills. */
function withVideo(photo) {
  const files = [['Site MP4', '640', '360', 'site'], ['HD MP4', '1280', '720', 'hd'], ['Video Original', '', '', 'orig']].map(
    ([label, width, height, part]) => ({ label, width, height, source: `https://www.flickr.com/photos/stand-in/1/play/${part}/0/`, url: 'https://www.flickr.com/photos/stand-in/1/', media: 'video' }),
  );
  return { ...photo, sizes: { ...photo.sizes, size: [...photo.sizes.size, ...files] } };
}

function truncated(response, text) {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.write(text.slice(0, 200), () => response.destroy());
}

function endless(response) {
  response.writeHead(200, { 'content-type': 'application/json' });
  const more = () => {
    while (!response.destroyed && response.write(' '.repeat(16_384)));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}
