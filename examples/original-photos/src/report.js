// What is logged: one line for each lookup that failed at Flickr or in ourselves. Never an address, since that has the key in it.
import { Refusal } from './refusal.js';

const REPEAT_MS = 60_000;

export function createReport(write = console.error, now = () => performance.now()) {
  let quietUntil = 0;

  return (id, error) => {
    if (error.name === 'AbortError') return; // given up, since nobody waits for it any more
    if (!(error instanceof Refusal)) {
      write(`internal error${id ? ` with ${id}` : ''}: ${error.stack}`);
      return;
    }
    if (error.status < 500) return; // no trouble: such a photo, or no such photo
    if (error.code === 'misconfigured') {
      if (now() < quietUntil) return;
      quietUntil = now() + REPEAT_MS;
      write(`NO LOOKUP WORKS: Flickr refuses FLICKR_API_KEY or the form of our requests (${error.detail}). Said again in a minute if so.`);
      return;
    }
    write(`lookup of ${id} failed: ${error.code}${error.detail ? ` (${error.detail})` : ''}`);
  };
}
