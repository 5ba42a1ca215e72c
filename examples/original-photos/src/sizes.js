// Parses the response of flickr.photos.getSizes into a photo, or finds its error. Knows no HTTP.
import { Refusal } from './refusal.js';

// https://www.flickr.com/services/api/flickr.photos.getSizes.html
const FAILURES = {
  1: 'unknown_photo', // "Photo not found"
  2: 'private_photo', // "Permission denied"
  100: 'misconfigured', // "Invalid API Key"
  105: 'upstream_busy', // "Service currently unavailable"
  106: 'upstream_busy', // "Write operation failed", which is documented as temporary too
  111: 'misconfigured', // "Format not found"
  112: 'misconfigured', // "Method not found"
};
const SOON_S = 10;
const PLAIN = /^[\w/-]+(?:\.\w+)?$/;

/**
 * `{ picture, text }`: the address to redirect to (null without a picture), and the response, which is checked completely but
 * kept as text. One text is one object to keep; parsed, it is about a hundred, which the garbage collector would copy while a
 * burst waits.
 *
 * `origins` are the allowed origins of pictures: a redirect to any other address would let people hide addresses behind this
 * service.
 */
export function readPhoto(text, origins) {
  const { sizes } = readAnswer(text, origins);
  return { picture: best(sizes), text };
}

/** The whole photo, for clients that want more than the picture. */
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

/** Numbers are numbers for squares, and strings for the other sizes. */
function readSize(size, checked) {
  const { label, media } = size ?? {};
  const [width, height] = [pixels(size?.width), pixels(size?.height)];
  if (typeof label !== 'string' || (media !== 'photo' && media !== 'video')) throw invalid('a size without label or media');
  // This service never redirects to a video, and Flickr itself does not always know the size of one.
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
 * The address of a picture if its origin is allowed. An `http:` address becomes `https:` if that origin is allowed. All sizes
 * of a photo have one origin, so an address with a normal rest after it needs no parsing.
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

/** `.example.com` stands for that host and all hosts below it. */
const isHost = (host, allowed) => (allowed.startsWith('.') ? `.${host}`.endsWith(allowed) : host === allowed);

/** An address that a person may follow, so no `javascript:`. The service does not redirect to it, so its host does not matter. */
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

/** The original if its owner shares it, otherwise the largest size. For a video, the largest still. */
function best(sizes) {
  const area = ({ width, height }) => width * height;
  const pictures = sizes.filter(({ media }) => media === 'photo');
  const original = pictures.find(({ label }) => label === 'Original');
  return original ?? pictures.reduce((most, one) => (most && area(most) >= area(one) ? most : one), null);
}

const invalid = (detail) => new Refusal('upstream_invalid', { detail });
