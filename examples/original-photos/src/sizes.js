// Makes a photo of the text that flickr.photos.getSizes has answered, or says what is wrong with it. Knows no HTTP.
import { Refusal } from './refusal.js';

// https://www.flickr.com/services/api/flickr.photos.getSizes.html
const FAILURES = {
  1: 'unknown_photo', // "Photo not found"
  2: 'private_photo', // "Permission denied"
  100: 'misconfigured', // "Invalid API Key"
  105: 'upstream_busy', // "Service currently unavailable"
  106: 'upstream_busy', // "Write operation failed", which is said to be temporary too
  111: 'misconfigured', // "Format not found"
  112: 'misconfigured', // "Method not found"
};
const SOON_S = 10;
const PLAIN = /^[\w/-]+(?:\.\w+)?$/;

/**
 * `{ picture, text }`: where to redirect to (null if there is no picture), and the answer, which is checked whole but kept as it
 * came. As one text it is one thing to keep; as objects it is a hundred, which the garbage collector copies while a burst waits.
 *
 * `origins` are those where a picture may be: a redirect to anywhere else would make this service a way to hide addresses.
 */
export function readPhoto(text, origins) {
  const { sizes } = readAnswer(text, origins);
  return { picture: best(sizes), text };
}

/** The whole photo, for those who want more than the picture. */
export function describe(id, { picture, text }, origins) {
  return { id, picture, ...readAnswer(text, origins) };
}

function readAnswer(text, origins) {
  const { stat, code, sizes } = parse(text);
  if (stat === 'fail') throw failure(code);
  if (stat !== 'ok') throw invalid('no "stat"');
  if (!Array.isArray(sizes?.size)) throw invalid('no list of sizes');
  const checked = pictureAt(origins);
  const flag = (value) => Number(value) === 1;
  return {
    sizes: sizes.size.map((size) => readSize(size, checked)),
    may: { blog: flag(sizes.canblog), print: flag(sizes.canprint), download: flag(sizes.candownload) },
  };
}

function parse(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid('not JSON'); // the parser's own message quotes the text
  }
  return value ?? {};
}

function failure(code) {
  const known = Object.hasOwn(FAILURES, code) ? FAILURES[code] : 'upstream_invalid';
  return new Refusal(known, { detail: `code ${Number(code)}`, retryAfter: known === 'upstream_busy' ? SOON_S : undefined });
}

/** Numbers come as numbers for squares and as strings for the rest. */
function readSize(size, checked) {
  const { label, media } = size ?? {};
  const [width, height] = [pixels(size?.width), pixels(size?.height)];
  if (typeof label !== 'string' || (media !== 'photo' && media !== 'video')) throw invalid('a size without label or media');
  // We never redirect to a video, and Flickr itself does not always know how large one is.
  if (media === 'photo' && !(width && height)) throw invalid('a picture without width and height');
  const source = media === 'photo' ? checked(size.source) : webAddress(size.source);
  if (!source) throw invalid(`a ${media} at an address that is not allowed`);
  return { label, media, width, height, source, page: webAddress(size.url) };
}

function pixels(value) {
  const number = typeof value === 'string' && /^\d{1,7}$/.test(value) ? Number(value) : value;
  return Number.isInteger(number) && number > 0 ? number : null;
}

/**
 * Gives the address of a picture if its origin is allowed; the old `http:` form of an origin that is allowed with https is lifted
 * to that. All sizes of a photo have one origin: an address that goes on after it without anything unusual needs no parsing.
 */
function pictureAt(origins) {
  const allowed = (protocol, host) => origins.some((origin) => origin.protocol === protocol && isHost(host, origin.host));
  let known;
  return (source) => {
    if (known && typeof source === 'string' && source.startsWith(known) && PLAIN.test(source.slice(known.length))) return source;
    const url = parsed(source);
    if (!url || url.username || url.password) return undefined;
    if (!allowed(url.protocol, url.host)) {
      if (url.protocol !== 'http:' || !allowed('https:', url.host)) return undefined;
      url.protocol = 'https:';
    }
    known = `${url.origin}/`;
    return url.href;
  };
}

/** `.example.com` stands for that host and all below it. */
const isHost = (host, allowed) => (allowed.startsWith('.') ? `.${host}`.endsWith(allowed) : host === allowed);

/** Somebody may follow it: no `javascript:`. It leads nobody by itself, so its host does not matter. */
function webAddress(text) {
  return typeof text === 'string' && /^https?:\/\/[^\s]+$/i.test(text) ? text : null;
}

function parsed(text) {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** The original where its owner shares it, or else the largest there is; of a video, the largest still. */
function best(sizes) {
  const area = ({ width, height }) => width * height;
  const pictures = sizes.filter(({ media }) => media === 'photo');
  const original = pictures.find(({ label }) => label === 'Original');
  return original ?? pictures.reduce((most, one) => (most && area(most) >= area(one) ? most : one), null);
}

const invalid = (detail) => new Refusal('upstream_invalid', { detail });
