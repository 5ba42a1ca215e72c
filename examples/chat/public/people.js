// Shows the people in the room, who joins, leaves and types. Knows no connection.
import { element, face } from './messages.js';
import { at, isAtEnd, toEnd } from './page.js';

const TYPES_FOR = 4_000; // ms after a key
const SETTLING = 6_000; // ms after a reconnection in which the others reconnect too; no joining or leaving is shown
const FACES = 4;

export class People {
  #note;
  #you;
  #told = new Map(); // id -> { id, name }, as the server sent them
  #shown = new Map(); // also those who may return in a moment
  #settling;
  #typing = new Map(); // id -> timer

  /** `note` shows a line between the messages. */
  constructor(note) {
    this.#note = note;
  }

  /** The page has entered a room, or entered it again. */
  begin(you, people, isReturn) {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    if (isReturn) {
      this.#settling = setTimeout(() => {
        this.#settling = undefined;
        this.are([...this.#told.values()]);
      }, SETTLING);
    } else {
      this.#shown = new Map();
    }
    this.#you = you;
    this.are(people);
  }

  are(people) {
    this.#told = new Map(people.map((person) => [person.id, person]));
    const next = new Map(this.#told);
    if (this.#settling) for (const [id, person] of this.#shown) if (!next.has(id)) next.set(id, person);
    if (this.#shown.size > 0) this.#noteChanges(next);
    this.#shown = next;
    this.#show();
  }

  /** The page has left the room. */
  end() {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    this.#told = this.#shown = new Map();
    this.clearTyping();
    this.#show();
  }

  types(id) {
    clearTimeout(this.#typing.get(id));
    this.#typing.set(id, setTimeout(() => this.typedLast(id), TYPES_FOR));
    this.#showTyping();
  }

  /** The person has sent the message, or stopped typing. */
  typedLast(id) {
    clearTimeout(this.#typing.get(id));
    if (this.#typing.delete(id)) this.#showTyping();
  }

  clearTyping() {
    for (const id of [...this.#typing.keys()]) this.typedLast(id);
  }

  #noteChanges(next) {
    const follow = isAtEnd();
    for (const [id, { name }] of next) {
      const before = this.#shown.get(id)?.name;
      if (id === this.#you || before === name) continue;
      this.#note(before === undefined ? `${name} came in` : `${before} is now ${name}`);
    }
    for (const [id, { name }] of this.#shown) if (!next.has(id) && id !== this.#you) this.#note(`${name} left`);
    if (follow) toEnd();
  }

  #show() {
    const you = this.#you;
    const sorted = [...this.#shown.values()].sort((a, b) => (b.id === you) - (a.id === you) || a.name.localeCompare(b.name));
    at('count').textContent = sorted.length || '';
    at('people').replaceChildren(
      ...sorted.map(({ id, name }) => element('li', '', face(id, name), element('span', 'name', name), ...(id === you ? [element('small', '', 'you')] : []))),
    );
    const faces = sorted.slice(0, FACES).map(({ id, name }) => face(id, name));
    if (sorted.length > FACES) faces.push(element('span', 'face more', `+${sorted.length - FACES}`));
    at('faces').replaceChildren(...faces);
  }

  #showTyping() {
    const names = [...this.#typing.keys()].map((id) => this.#shown.get(id)?.name).filter(Boolean);
    const who = names.length > 2 ? 'Several people are' : names.length === 2 ? `${names.join(' and ')} are` : `${names[0]} is`;
    at('typing').textContent = names.length > 0 ? `${who} typing…` : '';
  }
}
