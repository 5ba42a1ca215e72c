// A token bucket: a burst, then so many a second. Knows not what is counted.

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

  /** Takes a token and returns 0, or returns the milliseconds until there will be one. */
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
