// The settings from the environment, checked once at the start. Knows no HTTP. The key is passed only to the upstream.

/** https://www.flickr.com/services/api/request.rest.html */
const FLICKR = 'https://api.flickr.com/services/rest/';
const PICTURES = 'https://*.staticflickr.com';

/** Throws with a message that names the variable, but not its value if that may be the key. */
export function readSettings(env) {
  const flickrUrl = readUrl('FLICKR_URL', env.FLICKR_URL ?? FLICKR);
  const standIn = !`.${flickrUrl.hostname}`.endsWith('.flickr.com');
  return {
    port: env.PORT || 3000, // a number or the path of a socket, which Node's listen() both accepts
    key: readKey(env.FLICKR_API_KEY),
    flickrUrl,
    standIn,
    origins: readOrigins(env.PHOTO_ORIGINS, env.FLICKR_URL ? flickrUrl : undefined),
    upstreamCalls: whole(env, 'UPSTREAM_CALLS', { otherwise: 512, least: 1, most: 10_000 }),
    tryTimeout: whole(env, 'TRY_TIMEOUT_MS', { otherwise: 5000, least: 1, most: 600_000 }),
    lookupTimeout: whole(env, 'LOOKUP_TIMEOUT_MS', { otherwise: 8000, least: 1, most: 600_000 }),
    // The longest pause after a 429. A stand-in sends a 429 for one photo as a sample, and the other samples must work at
    // once.
    longestPause: whole(env, 'LONGEST_PAUSE_SECONDS', { otherwise: standIn ? 0 : 3600, least: 0, most: 3600 }),
    cache: {
      entries: whole(env, 'CACHE_ENTRIES', { otherwise: 10_000, least: 1, most: 1_000_000 }),
      fresh: whole(env, 'CACHE_SECONDS', { otherwise: 600, least: 0, most: 86_400 }),
      unknown: whole(env, 'CACHE_UNKNOWN_SECONDS', { otherwise: 60, least: 0, most: 86_400 }),
      stale: whole(env, 'CACHE_STALE_SECONDS', { otherwise: 86_400, least: 0, most: 30 * 86_400 }),
    },
  };
}

function readKey(key) {
  if (!key) throw new Error('FLICKR_API_KEY is missing: the key of your application, from https://www.flickr.com/services/apps/create/');
  if (!/^[\w-]+$/.test(key)) throw new Error('FLICKR_API_KEY has characters that no key has (letters, digits, "-" and "_" only)');
  return key;
}

function readUrl(name, text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new Error(`${name} must be an http or https address without user, query or fragment, such as ${FLICKR}`);
  }
  return url;
}

/** Origins of pictures. If FLICKR_URL is set (for example to a stand-in), pictures of that origin are trusted too. */
function readOrigins(text, upstream) {
  const given = (text ?? PICTURES).split(/[\s,]+/).filter(Boolean);
  return [...given.map(readOrigin), ...(upstream ? [{ protocol: upstream.protocol, host: upstream.host }] : [])];
}

/** `https://live.staticflickr.com`, or with `*.` in front of the host for that host and all hosts below it. */
function readOrigin(text) {
  const [, protocol, star, host] = /^(https?:)\/\/(\*\.)?([a-z0-9.-]+(?::\d{1,5})?)$/.exec(text) ?? [];
  if (!host) throw new Error(`PHOTO_ORIGINS: "${text}" is not an origin such as ${PICTURES} or http://127.0.0.1:3001`);
  return { protocol, host: star ? `.${host}` : host };
}

function whole(env, name, { otherwise, least, most }) {
  const text = env[name];
  if (text === undefined || text === '') return otherwise;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
}
