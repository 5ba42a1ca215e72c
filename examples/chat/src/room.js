// A room: its people and the messages for them. Knows visitors as objects that accept frames. Knows no sockets.
import { LIMITS } from './limits.js';

export class Room {
  #history;
  #limits;
  #visitors = new Set();
  #people = new Map(); // id -> { name, visitors, leaving }

  /** `open` gives the room its history, which passes messages to the room. */
  static async open(name, openHistory, limits = LIMITS) {
    const room = new Room(name, limits);
    room.#history = await openHistory((message) => room.#tell({ kind: 'message', message }));
    return room;
  }

  constructor(name, limits) {
    this.name = name;
    this.#limits = limits;
  }

  get isSilent() {
    return this.#history.isEmpty;
  }

  /** Adds a visitor and sends it what it has missed, or returns the reason of a refusal. */
  enter(visitor, { id, name, last }) {
    if (this.#visitors.size >= this.#limits.visitors) return 'room_full';
    const person = this.#people.get(id) ?? { name, visitors: new Set() };
    if (person.visitors.size >= this.#limits.tabs) return 'too_many_tabs';
    clearTimeout(person.leaving);
    const isNews = !this.#people.has(id) || person.name !== name;
    person.name = name;
    person.visitors.add(visitor);
    this.#people.set(id, person);
    // In the same turn as the next line, so that no message comes between the missed ones and the new ones.
    visitor.tell({ kind: 'welcome', room: this.name, you: id, people: this.#list(), ...this.#missed(last) });
    this.#visitors.add(visitor);
    if (isNews) this.#tell({ kind: 'people', people: this.#list() }, visitor);
    return undefined;
  }

  /** A person is gone some time after the last tab has closed, because a reload is not a departure. */
  leave(visitor, id) {
    if (!this.#visitors.delete(visitor)) return;
    const person = this.#people.get(id);
    person.visitors.delete(visitor);
    if (person.visitors.size > 0) return;
    person.leaving = setTimeout(() => {
      this.#people.delete(id);
      this.#tell({ kind: 'people', people: this.#list() });
    }, this.#limits.leaving);
    person.leaving.unref();
  }

  rename(id, name) {
    const person = this.#people.get(id);
    if (person.name === name) return;
    person.name = name;
    this.#tell({ kind: 'people', people: this.#list() });
  }

  nameOf(id) {
    return this.#people.get(id).name;
  }

  isKnown(messageId) {
    return this.#history.has(messageId);
  }

  say(message) {
    return this.#history.append(message);
  }

  catchUp() {
    return this.#history.catchUp();
  }

  earlier(before) {
    return this.#history.before(before);
  }

  types(visitor, id) {
    this.#tell({ kind: 'typing', id }, visitor);
  }

  #missed(last) {
    const messages = last && this.#history.after(last);
    return messages ? { resumed: true, messages } : { resumed: false, ...this.#history.before() };
  }

  #list() {
    return [...this.#people].map(([id, { name }]) => ({ id, name }));
  }

  #tell(frame, except) {
    const text = JSON.stringify(frame);
    for (const visitor of this.#visitors) if (visitor !== except) visitor.tellText(text);
  }
}
