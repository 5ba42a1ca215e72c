// A token bucket: a burst, then a steady rate per second. Does not know what it counts.

export class Bucket {
  #rate;
  #now;
  #tokens;
  #filled;

  constructor({ burst, perSecond }, now = () => performance.now()) {
    this.#rate = { burst, perSecond };
    this.#now = now;
    this.#tokens = burst;
    this.#filled = now();
  }

  /** Takes a token and returns 0, or returns the milliseconds until the next token. */
  take() {
    const now = this.#now();
    const { burst, perSecond } = this.#rate;
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#filled) / 1000) * perSecond);
    this.#filled = now;
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) / perSecond) * 1000);
    this.#tokens -= 1;
    return 0;
  }
}
