// Shows the messages as elements. What people wrote becomes text, never HTML. Knows no sockets.

const TOGETHER = 5 * 60_000; // messages of one person within this time share one name
const TIME = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'long', day: 'numeric', month: 'long' });

/** An element with a class and children. Strings become text nodes. */
export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** A round sign for a person: initials on a colour. The colour depends on the id, not on the name. */
export function face(id, name) {
  const made = element('span', 'face', initials(name));
  made.setAttribute('aria-hidden', 'true');
  made.style.setProperty('--hue', hueOf(id));
  return made;
}

export class Messages {
  #log;
  #outbox;
  #shown = []; // { message, item }, by seq
  #you;

  constructor({ log, outbox }) {
    this.#log = log;
    this.#outbox = outbox;
  }

  /** The id under which the others see the person at this page. */
  set you(id) {
    this.#you = id;
  }

  get oldest() {
    return this.#shown[0]?.message.seq;
  }

  clear() {
    this.#shown = [];
    this.#log.replaceChildren();
  }

  append(messages) {
    for (const message of messages) {
      const item = this.#item(message, this.#shown.at(-1)?.message);
      this.#shown.push({ message, item });
      this.#log.append(item);
    }
  }

  /** Screen readers do not announce these, because they are old. */
  prepend(messages) {
    this.silently(() => {
      const first = this.#shown.shift();
      const before = messages.map((message, index) => ({ message, item: this.#item(message, messages[index - 1]) }));
      first?.item.remove();
      this.#log.prepend(...before.map(({ item }) => item));
      this.#shown.unshift(...before);
      if (!first) return;
      // It may not need its name any more, because a message of the same person is before it now.
      const item = this.#item(first.message, messages.at(-1));
      this.#shown.splice(before.length, 0, { message: first.message, item });
      if (before.length > 0) before.at(-1).item.after(item);
      else this.#log.prepend(item);
    });
  }

  /** Messages that are not sent yet are below all others. */
  showOutbox(messages) {
    this.#outbox.replaceChildren(
      ...messages.map(({ text }) => {
        const item = element('li', 'message mine unsent', element('div', 'bubble', text));
        item.append(element('span', 'sending', 'Sending'));
        return item;
      }),
    );
  }

  /** A line between the messages, for example when a person joins. */
  note(text) {
    this.#log.append(element('li', 'note', text));
  }

  silently(change) {
    this.#log.setAttribute('aria-live', 'off');
    change();
    requestAnimationFrame(() => this.#log.setAttribute('aria-live', 'polite'));
  }

  #item(message, previous) {
    const mine = message.from === this.#you;
    const at = new Date(message.at);
    const isNewDay = !previous || new Date(previous.at).toDateString() !== at.toDateString();
    const isFirst = isNewDay || previous.from !== message.from || previous.name !== message.name || message.at - previous.at > TOGETHER;
    const item = element('li', `message${mine ? ' mine' : ''}${isFirst ? ' first' : ''}`);
    item.dataset.seq = message.seq;
    if (isNewDay) item.append(element('p', 'day', dayOf(at)));
    const time = element('time', '', TIME.format(at));
    time.dateTime = at.toISOString();
    if (isFirst && !mine) item.append(face(message.from, message.name));
    if (isFirst) item.append(element('p', 'by', element('b', mine ? 'unseen' : '', mine ? 'You' : message.name), time));
    const bubble = element('div', 'bubble', message.text);
    bubble.title = at.toLocaleString();
    if (/^(?:\p{Extended_Pictographic}|\p{Emoji_Component}|\s){1,12}$/u.test(message.text) && /\p{Extended_Pictographic}/u.test(message.text)) bubble.classList.add('large');
    item.append(bubble);
    return item;
  }
}

function dayOf(date) {
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
  return ['Today', 'Yesterday'][days] ?? DAY.format(date);
}

function initials(name) {
  const words = name.split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0] ?? '?'];
  return letters.map((word) => [...word][0].toUpperCase()).join('');
}

function hueOf(id) {
  let sum = 2166136261; // FNV-1a: similar ids get different colours
  for (const letter of id) sum = Math.imul(sum ^ letter.codePointAt(0), 16777619);
  return ((sum >>> 0) % 24) * 15;
}
