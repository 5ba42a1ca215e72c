// One lookup at Flickr: at most two attempts, with limits on time and size. Knows the REST API, nothing of caches or
// clients.
import { Refusal } from './refusal.js';
import { readPhoto } from './sizes.js';

const MOST_BYTES = 256 * 1024; // a photo has about 20 sizes of 300 bytes
const PAUSE_S = 30; // after a 429 without Retry-After
const LONGEST_RETRY_S = 3600; // the quota is per hour: https://www.flickr.com/services/developer/api/
// No response has begun, so a second attempt is safe. A lookup of sizes changes nothing at Flickr.
const CONNECTION = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_SOCKET']);
const TIMEOUT = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);

export class Flickr {
  #settings;
  #address;
  #pausedUntil = 0;

  constructor(settings) {
    this.#settings = settings;
    this.#address = address(settings);
  }

  /**
   * The photo, or a Refusal. `lookup` is an AbortController: the caller aborts it when no client waits any more (and gets that
   * reason back), and a lookup that takes too long aborts itself. There is one for both, because after fetch() a signal costs
   * most.
   */
  async photo(id, lookup) {
    this.#refuseWhilePaused();
    const until = performance.now() + this.#settings.lookupTimeout;
    try {
      return await this.#ask(id, lookup, until);
    } catch (error) {
      if (error.code !== 'upstream_unreachable') throw error;
      return await this.#ask(id, lookup, until);
    }
  }

  async #ask(id, lookup, until) {
    const { signal } = lookup;
    signal.throwIfAborted();
    const within = Math.min(this.#settings.tryTimeout, until - performance.now());
    const timer = setTimeout(() => lookup.abort(new Refusal('upstream_timeout')), Math.max(within, 0));
    try {
      const response = await fetch(this.#address + encodeURIComponent(id), { signal, redirect: 'manual' });
      this.#checkStatus(response);
      return readPhoto(await readText(response), this.#settings.origins);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw error instanceof Refusal ? error : refused(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #checkStatus(response) {
    if (response.status === 200) return;
    response.body?.cancel().catch(() => {}); // its content does not matter; at worst the connection is closed
    const detail = `status ${response.status}`;
    if (response.status !== 429 && response.status !== 503) throw new Refusal('upstream_invalid', { detail });
    const retryAfter = seconds(response.headers.get('retry-after')) ?? PAUSE_S;
    // Flickr revokes keys that send more requests after this, so no request is sent until then.
    const pause = Math.min(retryAfter, this.#settings.longestPause) * 1000;
    if (response.status === 429) this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + pause);
    throw new Refusal('upstream_busy', { detail, retryAfter });
  }

  #refuseWhilePaused() {
    const left = this.#pausedUntil - performance.now();
    if (left > 0) throw new Refusal('upstream_busy', { detail: 'no request sent: Flickr has asked to wait', retryAfter: Math.ceil(left / 1000) });
  }
}

/**
 * The address without the id. https://www.flickr.com/services/api/request.rest.html and response.json.html: without
 * `nojsoncallback` the response is a script.
 */
function address({ flickrUrl, key }) {
  const fixed = { method: 'flickr.photos.getSizes', api_key: key, format: 'json', nojsoncallback: '1' };
  return `${flickrUrl.href}?${new URLSearchParams(fixed)}&photo_id=`;
}

async function readText(response) {
  const reader = response.body.getReader();
  const chunks = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks, bytes).toString();
    bytes += value.byteLength; // after decompression, because that is what memory has to hold
    if (bytes > MOST_BYTES) {
      reader.cancel().catch(() => {}); // ends the connection, which has more data
      throw new Refusal('upstream_invalid', { detail: `more than ${MOST_BYTES} bytes` });
    }
    chunks.push(value);
  }
}

/**
 * fetch() reports "fetch failed", with the real error as its cause. A response that breaks off is "terminated". Only names are
 * logged, because a message may quote the key.
 */
function refused(error) {
  const code = error.cause?.code ?? error.code;
  const detail = code ?? error.cause?.name ?? error.name;
  if (error.message === 'terminated') return new Refusal('upstream_invalid', { detail: `broke off: ${detail}` });
  if (TIMEOUT.has(code)) return new Refusal('upstream_timeout', { detail });
  if (CONNECTION.has(code)) return new Refusal('upstream_unreachable', { detail });
  return new Refusal('upstream_invalid', { detail });
}

/** Retry-After is a number of seconds or a date (RFC 9110, section 10.2.3). */
function seconds(text) {
  if (!text) return undefined;
  const wait = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - Date.now()) / 1000);
  return Number.isFinite(wait) ? Math.min(Math.max(wait, 1), LONGEST_RETRY_S) : undefined;
}
