// The API's responses, with one promise for each address, shared by all readers. Does not know how they are fetched.
import { createContext, use, useContext } from 'react';

const KEPT = 100;

/** An answer is `{ ok: true, value }` or `{ ok: false, status }`, because an unavailable API is a state of the page and not an exception. */
export class Data {
  #fetch;
  #carried;
  #kept = new Map();
  #inPage = new Set();

  /** `fetch(path)` resolves with an answer. `carried(path)`: in a browser, the answer that came with the page, if any. */
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

  /** Drops the answer, so that the next reader fetches it again. */
  drop(path) {
    const fetch = this.#fetch(path);
    this.#inPage.delete(path);
    this.#kept.set(path, watched(fetch));
  }

  /** On the server, each answer is written into the page for the browser. In the browser, those answers stay in the page. */
  isCarried(path) {
    return this.#carried === undefined || this.#inPage.has(path);
  }
}

export const DataContext = createContext();

/** Suspends until the answer has come. */
export function useAnswer(path) {
  return use(useContext(DataContext).get(path));
}

/**
 * Writes the server's answer into the page beside the part that was rendered from it. So each part of a streamed page is
 * complete when it arrives, and no script needs to run. `<` is escaped, so the text cannot end the element.
 */
export function Carried({ path, answer }) {
  if (!useContext(DataContext).isCarried(path)) return null;
  const json = JSON.stringify(answer).replaceAll('<', '\\u003c');
  return <script type="application/json" data-answer={path} dangerouslySetInnerHTML={{ __html: json }} />;
}

/** For `Data` in the browser. */
export function readCarried(path) {
  const found = [...document.querySelectorAll('script[data-answer]')].find(({ dataset }) => dataset.answer === path);
  return found && JSON.parse(found.textContent);
}

/** React reads `status` and `value`, and does not suspend if the value is already there. */
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
