// Every place of a component on the page, each on its own: one that fails leaves the others alone. Knows no framework.
import { payloadOf, placesOf, type Payload } from './load.js';

/** Calls `mount` for each, once the document is complete: so the script works in the page's head as well. */
export function mountAll(name: string, mount: (payload: Payload) => void): void {
  if (document.readyState === 'loading') {
    document.addEventListener('DOMContentLoaded', () => mountAll(name, mount), { once: true });
    return;
  }
  for (const node of placesOf(name)) {
    try {
      mount(payloadOf(node));
    } catch (error) {
      report(error);
    }
  }
}

/** Nobody has rendered it: the markup is a fallback, for the browser to fill. */
export function isEmpty(node: Element): boolean {
  return node.innerHTML.trim() === '';
}

/** To window.onerror and the console, as if nobody had caught it. */
function report(error: unknown): void {
  setTimeout(() => {
    throw error;
  });
}
