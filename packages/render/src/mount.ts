// Mounts a component at each of its places on the page. A place that fails does not affect the others. Knows no
// framework.
import { payloadOf, placesOf, type Payload } from './load.js';

/** Calls `mount` for each place once the document is complete, so the script also works in the page's head. */
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

/** Whether the markup was not rendered on a server: then it is a fallback for the browser to fill. */
export function isEmpty(node: Element): boolean {
  return node.innerHTML.trim() === '';
}

/** Reports an error to window.onerror and the console, like an uncaught error. */
function report(error: unknown): void {
  setTimeout(() => {
    throw error;
  });
}
