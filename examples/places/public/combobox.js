// A text field with suggestions, after the ARIA pattern of a combobox with a listbox. Knows no places.

const PAUSE = 60; // ms; a fast typist types faster, and does not need results for each key

export class Combobox {
  #parts;
  #calls;
  #items = [];
  #active = -1;
  #timer;
  #question = new AbortController();

  /**
   * `find(text, signal)` returns the matching items, `describe(item)` their texts { name, detail }. `typed` is called with each
   * text, `previewed` with the selected item of the list (or nothing), `chosen` with the accepted one.
   */
  constructor({ input, list, note }, calls) {
    this.#parts = { input, list, note };
    this.#calls = calls;
    input.addEventListener('input', () => this.#typed());
    input.addEventListener('keydown', (event) => this.#pressed(event));
    input.addEventListener('blur', () => this.#close());
    input.addEventListener('focus', () => this.#items.length > 0 && this.#open());
    // Before the field loses its focus, which would close the list under the finger.
    list.addEventListener('pointerdown', (event) => event.preventDefault());
    list.addEventListener('click', (event) => {
      const option = event.target.closest('[role=option]');
      if (option) this.#take([...list.children].indexOf(option));
    });
  }

  clear() {
    this.#parts.input.value = '';
    this.#forget();
    this.#calls.typed('');
  }

  #typed() {
    this.#forget();
    const text = this.#parts.input.value.trim();
    this.#calls.typed(text);
    if (text === '') this.#close();
    else this.#timer = setTimeout(() => this.#look(text), PAUSE);
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#question.abort();
    this.#items = [];
    this.#parts.note.textContent = '';
  }

  #pressed(event) {
    const count = this.#items.length;
    if (event.key === 'Escape') {
      if (this.#parts.list.hidden) this.clear();
      else this.#close();
    } else if (event.key === 'Enter' && !event.isComposing && count > 0) {
      this.#take(Math.max(this.#active, 0));
    } else if (event.key === 'ArrowDown' && count > 0) {
      this.#open();
      this.#point((this.#active + 1) % count);
    } else if (event.key === 'ArrowUp' && count > 0) {
      this.#open();
      this.#point(this.#active <= 0 ? count - 1 : this.#active - 1);
    } else {
      return;
    }
    event.preventDefault();
  }

  async #look(text) {
    this.#question = new AbortController();
    const { signal } = this.#question;
    try {
      const found = await this.#calls.find(text, signal);
      this.#show(found, found.length === 1 ? 'One place' : `${found.length || 'No'} places`);
    } catch (error) {
      if (signal.aborted) return; // another text was typed meanwhile
      this.#show([], 'No answer at the moment');
      console.warn(error);
    }
  }

  #show(found, words) {
    this.#items = found;
    this.#parts.list.replaceChildren(...(found.length > 0 ? found.map((item, index) => this.#option(item, index)) : [empty(words)]));
    this.#parts.note.textContent = words;
    this.#point(-1);
    if (document.activeElement === this.#parts.input) this.#open();
  }

  #option(item, index) {
    const { name, detail } = this.#calls.describe(item);
    const option = element('li', { id: `${this.#parts.list.id}-${index}`, role: 'option', 'aria-selected': 'false' });
    option.append(element('b', {}, name), element('span', {}, detail));
    return option;
  }

  #point(index) {
    const { input, list } = this.#parts;
    const option = (at) => (this.#items[at] ? list.children[at] : undefined);
    option(this.#active)?.setAttribute('aria-selected', 'false');
    this.#active = index;
    option(index)?.setAttribute('aria-selected', 'true');
    option(index)?.scrollIntoView({ block: 'nearest' });
    if (option(index)) input.setAttribute('aria-activedescendant', option(index).id);
    else input.removeAttribute('aria-activedescendant');
    this.#calls.previewed(this.#items[index]);
  }

  #take(index) {
    const item = this.#items[index];
    this.#parts.input.value = this.#calls.describe(item).name;
    this.#forget();
    this.#close();
    this.#calls.chosen(item);
  }

  #open() {
    this.#parts.list.hidden = false;
    this.#parts.input.setAttribute('aria-expanded', 'true');
  }

  #close() {
    this.#parts.list.hidden = true;
    this.#parts.input.setAttribute('aria-expanded', 'false');
    this.#point(-1);
  }
}

function empty(words) {
  return element('li', { role: 'presentation', class: 'none' }, words);
}

function element(tag, attributes, text = '') {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
