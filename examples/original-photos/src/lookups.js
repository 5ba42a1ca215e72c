// Finds photos: in the cache, by a running lookup, or by a new one. Knows neither HTTP nor Flickr's API.
import { LRUCache } from 'lru-cache';
import { Line } from './line.js';
import { Refusal } from './refusal.js';

export class Lookups {
  #ask;
  #seconds;
  #kept;
  #line;
  #flights = new Map();

  /** `ask(id, controller)` resolves with a photo or rejects with a Refusal. It is aborted when no client waits any more. */
  constructor({ ask, calls, cache }) {
    this.#ask = ask;
    this.#seconds = cache;
    this.#kept = new LRUCache({ max: cache.entries });
    this.#line = new Line(calls);
  }

  /**
   * `{ photo }` or `{ refusal }`, with its source (`from`: kept, flight or asked) and how many seconds it is valid. An expired
   * photo is used while Flickr fails, with that failure in `hides`. `left` is a promise that rejects when the client has left;
   * then this rejects too.
   */
  async find(id, left) {
    const kept = this.#kept.get(id);
    const seconds = kept ? Math.ceil((kept.freshUntil - performance.now()) / 1000) : 0;
    if (seconds > 0) return { ...kept.found, from: 'kept', seconds };
    const shared = this.#flights.get(id);
    try {
      const found = await (shared ?? this.#start(id)).wait(left);
      return { ...found, from: shared ? 'flight' : 'asked', seconds: this.#goodFor(found) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (kept?.found.photo) return { ...kept.found, from: 'kept', seconds, hides: error };
      return { refusal: error, from: shared ? 'flight' : 'asked', seconds: 0 };
    }
  }

  #start(id) {
    const flight = new Flight(
      (controller) => this.#line.run(controller.signal, () => this.#ask(id, controller)).then(
        (photo) => this.#keep(id, { photo }),
        (error) => {
          if (!error.lasting) throw error;
          return this.#keep(id, { refusal: error });
        },
      ),
      () => {
        // A lookup that was given up may end while the next one for the same photo runs.
        if (this.#flights.get(id) === flight) this.#flights.delete(id);
      },
    );
    this.#flights.set(id, flight);
    return flight;
  }

  #goodFor({ photo }) {
    return photo ? this.#seconds.fresh : this.#seconds.unknown;
  }

  #keep(id, found) {
    const fresh = this.#goodFor(found);
    const ttl = (fresh + (found.photo ? this.#seconds.stale : 0)) * 1000;
    if (ttl > 0) this.#kept.set(id, { found, freshUntil: performance.now() + fresh * 1000 }, { ttl });
    else this.#kept.delete(id);
    return found;
  }
}

/** A lookup for which several clients may wait. It ends when it is done, or when the last client has left. */
class Flight {
  #controller = new AbortController();
  #waiting = 0;
  #over = false;
  #result;
  #ended;

  constructor(work, ended) {
    this.#ended = () => {
      this.#over = true;
      ended();
    };
    this.#result = work(this.#controller);
    this.#result.then(this.#ended, this.#ended);
  }

  async wait(left) {
    this.#waiting += 1;
    try {
      return await Promise.race([this.#result, left]);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0 && !this.#over) {
        this.#ended(); // at once, because a new client needs another one
        this.#controller.abort();
      }
    }
  }
}
