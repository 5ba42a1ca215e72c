// What the API has said, one promise for each address, shared by all who ask. Knows not how it is fetched.
import { createContext, use, useContext } from 'react';

const KEPT = 100;

/** An answer is `{ ok: true, value }` or `{ ok: false, status }`: that an API is down is a state of a page, not an exception. */
export class Data {
  #fetch;
  #carried;
  #kept = new Map();
  #inPage = new Set();

  /** `fetch(path)` resolves with an answer; `carried(path)`: in a browser, the answer that came with the page, if one did. */
  constructor(fetch, carried) {
    this.#fetch = fetch;
    this.#carried = carried;
  }

  /** The same promise for the same path, until it is dropped. */
  get(path) {
    const kept = this.#kept.get(path);
    if (kept) return kept;
    const answer = this.#carried?.(path);
    if (answer) this.#inPage.add(path);
    const promise = answer ? settled(answer) : watched(this.#fetch(path));
    if (this.#kept.size >= KEPT) this.#kept.delete(this.#kept.keys().next().value);
    this.#kept.set(path, promise);
    return promise;
  }

  /** The next one who asks has it fetched anew. */
  drop(path) {
    const fetch = this.#fetch(path);
    this.#inPage.delete(path);
    this.#kept.set(path, watched(fetch));
  }

  /** On the server each answer is carried to the browser; there, those that were carried stay where they are. */
  isCarried(path) {
    return this.#carried === undefined || this.#inPage.has(path);
  }
}

export const DataContext = createContext();

/** Suspends until the answer is there. */
export function useAnswer(path) {
  return use(useContext(DataContext).get(path));
}

/**
 * An answer that the server had, left in the page for the browser beside what was made from it: so each part of a streamed page is
 * whole when it arrives, and needs no script to be run. `<` is escaped, so no text in it can end the element.
 */
export function Carried({ path, answer }) {
  if (!useContext(DataContext).isCarried(path)) return null;
  const json = JSON.stringify(answer).replaceAll('<', '\\u003c');
  return <script type="application/json" data-answer={path} dangerouslySetInnerHTML={{ __html: json }} />;
}

/** For the browser's `Data`. */
export function readCarried(path) {
  const found = [...document.querySelectorAll('script[data-answer]')].find(({ dataset }) => dataset.answer === path);
  return found && JSON.parse(found.textContent);
}

/** React reads `status` and `value`, and does not suspend at all for what is there already. */
function settled(answer) {
  return Object.assign(Promise.resolve(answer), { status: 'fulfilled', value: answer });
}

function watched(promise) {
  promise.then(
    (value) => Object.assign(promise, { status: 'fulfilled', value }),
    (reason) => Object.assign(promise, { status: 'rejected', reason }),
  );
  return promise;
}
