// A waiting line: so many at once, the others in order of arrival. Knows nothing of what it lets through.

export class Line {
  #free;
  #waiting = new Set(); // keeps the order, and lets somebody in the middle leave at no cost

  constructor(slots) {
    this.#free = slots;
  }

  /** Runs `work` once it is its turn; whoever leaves the line (`signal`) rejects with the signal's reason. */
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

  /** The slot goes to the next in the line directly: in between, a newcomer could take it from him. */
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
