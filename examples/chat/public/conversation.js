// What has been said in this room as far as the page knows, and what waits to be sent. Knows no sockets and no elements.

/**
 * Nothing is lost: a message stays in the outbox until it comes back with its place in the room, and goes out again after every
 * break. Nothing is doubled: it keeps its id, by which the server and the page know it again.
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

  /** The newest message with a place; the server sends what came after it. */
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

  /** The message to send now: one at a time, so that they arrive in the order in which they were written. */
  next() {
    if (this.#sending || this.#outbox.length === 0) return undefined;
    const [{ id, text }] = this.#outbox;
    this.#sending = id;
    return { kind: 'say', id, text };
  }

  /** The connection broke, or the server sent it back: it will be sent again. */
  sendAgain() {
    this.#sending = undefined;
  }

  /** A message has its place. */
  settle(id) {
    if (this.#sending === id) this.#sending = undefined;
    const length = this.#outbox.length;
    this.#outbox = this.#outbox.filter((message) => message.id !== id);
    if (this.#outbox.length !== length) this.#store.save(this.#outbox);
  }

  /** After a break too long to be caught up with one by one, the page begins anew. */
  forget() {
    this.#seen.clear();
    this.#last = undefined;
  }

  /** Those of the messages that are news. */
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

/** Not `crypto.randomUUID`, which a page without TLS has on localhost only. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
