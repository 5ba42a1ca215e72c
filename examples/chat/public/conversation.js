// The messages of this room that the page has, and those that wait to be sent. Knows no sockets and no elements.

/**
 * No message is lost: it stays in the outbox until it comes back with its number in the room, and it is sent again after every
 * disconnection. No message appears twice: it keeps its id, which the server and the page compare.
 */
export class Conversation {
  #seen = new Set();
  #outbox;
  #store;
  #sending;
  #last;

  /** `store` keeps the outbox over a reload: { load, save }. */
  constructor(store = { load: () => [], save: () => {} }) {
    this.#store = store;
    this.#outbox = store.load();
  }

  /** The newest message with a number. The server sends the messages after it. */
  get last() {
    return this.#last;
  }

  get outbox() {
    return [...this.#outbox];
  }

  compose(text, at = Date.now()) {
    const message = { id: newId(), text, at };
    this.#outbox.push(message);
    this.#store.save(this.#outbox);
    return message;
  }

  /** The message to send now. Only one at a time, so that they arrive in the order in which they were written. */
  next() {
    if (this.#sending || this.#outbox.length === 0) return undefined;
    const [{ id, text }] = this.#outbox;
    this.#sending = id;
    return { kind: 'say', id, text };
  }

  /** The connection broke, or the server sent the message back: it will be sent again. */
  sendAgain() {
    this.#sending = undefined;
  }

  /** A message has its number. */
  settle(id) {
    if (this.#sending === id) this.#sending = undefined;
    const length = this.#outbox.length;
    this.#outbox = this.#outbox.filter((message) => message.id !== id);
    if (this.#outbox.length !== length) this.#store.save(this.#outbox);
  }

  /** After a disconnection too long to catch up, the page starts with an empty conversation. */
  forget() {
    this.#seen.clear();
    this.#last = undefined;
  }

  /** The messages that are new. */
  receive(messages) {
    const news = messages.filter(({ seq, id }) => !this.#seen.has(id) && seq > (this.#last?.seq ?? 0));
    for (const { seq, id } of news) {
      this.#seen.add(id);
      this.#last = { seq, id };
      this.settle(id);
    }
    return news;
  }
}

/** Not `crypto.randomUUID`: on a page without TLS it exists only on localhost. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
