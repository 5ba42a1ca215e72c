// A queue with a limit on concurrent work: the rest waits in order of arrival. Knows nothing of the work.

export class Line {
  #free;
  #waiting = new Set(); // keeps the order, and removes from the middle at no cost

  constructor(slots) {
    this.#free = slots;
  }

  /** Runs `work` when it is its turn. A caller that leaves the queue (`signal`) gets a rejection with the signal's reason. */
  async run(signal, work) {
    await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(signal) {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const called = () => {
        signal.removeEventListener('abort', left);
        resolve();
      };
      const left = () => {
        this.#waiting.delete(called);
        reject(signal.reason);
      };
      signal.addEventListener('abort', left, { once: true });
      this.#waiting.add(called);
    });
  }

  /** Passes the slot directly to the next caller in the queue. Otherwise a new caller could take it in between. */
  #next() {
    const [called] = this.#waiting;
    if (!called) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(called);
    called();
  }
}
