// A WebSocket that reconnects, with back-off and jitter, and that detects silence. Knows no chat.

const FIRST = 800; // ms; the pages of a restarted server reconnect spread over this time
const LONGEST = 15_000;
const SILENCE = 20_000; // after this silence the page asks the server for a sign of life
const ANSWER_LIMIT = 10_000; // time limit for that sign
const LOOK = 2_500;

export class Link {
  #url;
  #on;
  #socket;
  #tries = 0;
  #timer;
  #heard = 0;
  #asked = false;
  #watch;
  #ended = false;

  /** `on`: { open, frame, lost }. `lost` gets the server's reason, if any. */
  constructor(url, on) {
    this.#url = url;
    this.#on = on;
    this.#watch = setInterval(() => this.#look(), LOOK);
    addEventListener('online', this.now);
    document.addEventListener('visibilitychange', this.#lookAgain);
    this.#connect();
  }

  /** Returns false without a connection; then the frame is dropped. */
  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** The server has accepted the page, so the next disconnection starts with short waits again. */
  settled() {
    this.#tries = 0;
  }

  now = () => {
    if (this.#ended || this.#socket) return;
    clearTimeout(this.#timer);
    this.#connect();
  };

  end() {
    this.#ended = true;
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    removeEventListener('online', this.now);
    document.removeEventListener('visibilitychange', this.#lookAgain);
    this.#socket?.close(1000);
    this.#socket = undefined;
  }

  #connect() {
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#heard = performance.now();
    this.#asked = false;
    // Events of an abandoned socket are ignored.
    const ours = (react) => (event) => socket === this.#socket && react(event);
    socket.onopen = ours(() => this.#on.open());
    socket.onclose = ours(({ reason }) => this.#lost(reason));
    socket.onmessage = ours(({ data }) => {
      this.#heard = performance.now();
      this.#asked = false;
      this.#on.frame(JSON.parse(data));
    });
  }

  #lost(reason) {
    this.#socket = undefined;
    if (this.#ended) return;
    const longest = Math.min(LONGEST, FIRST * 2 ** this.#tries);
    this.#tries += 1;
    // Half of the wait is fixed. The first wait is random as a whole.
    const wait = this.#tries === 1 ? Math.random() * longest : longest / 2 + (Math.random() * longest) / 2;
    this.#timer = setTimeout(this.now, wait);
    this.#on.lost(reason);
  }

  #lookAgain = () => {
    if (document.visibilityState !== 'visible') return;
    this.now();
    this.#look(0); // a laptop that has slept may have lost its connection unnoticed
  };

  #look(silence = SILENCE) {
    const socket = this.#socket;
    if (socket === undefined) return;
    const silent = performance.now() - this.#heard;
    if (this.#asked && silent > this.#asked + ANSWER_LIMIT) {
      this.#lost('');
      socket.close();
    } else if (!this.#asked && silent >= silence && this.send({ kind: 'ping' })) {
      this.#asked = Math.max(1, silent);
    } else if (socket.readyState === WebSocket.CONNECTING && silent > ANSWER_LIMIT) {
      this.#lost('');
      socket.close();
    }
  }
}
