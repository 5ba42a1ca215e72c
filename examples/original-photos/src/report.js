// The log: one line for each lookup that failed at Flickr or in this service. Never an address, because it contains the
// key.
import { Refusal } from './refusal.js';

const REPEAT_MS = { misconfigured: 60_000 };
const OTHERS_MS = 1000;

/** Each kind of failure is logged once a second at most, with its count, because a burst fails as a whole. */
export function createReport(write = console.error, now = () => performance.now()) {
  const said = new Map();

  return (id, error) => {
    if (error.name === 'AbortError') return; // given up, because no client waits for it any more
    if (!(error instanceof Refusal)) return write(`internal error${id ? ` with ${id}` : ''}: ${error.stack}`);
    if (error.status < 500) return undefined; // not an error: the photo is private or does not exist
    const before = said.get(error.code);
    if (before && now() < before.quietUntil) return void (before.unsaid += 1);
    said.set(error.code, { quietUntil: now() + (REPEAT_MS[error.code] ?? OTHERS_MS), unsaid: 0 });
    const more = before?.unsaid ? `; ${before.unsaid} more since the last such line` : '';
    return write(`${described(id, error)}${more}`);
  };
}

function described(id, { code, detail }) {
  if (code === 'misconfigured') return `NO LOOKUP WORKS: Flickr refuses FLICKR_API_KEY or the form of our requests (${detail})`;
  return `lookup of ${id} failed: ${code}${detail ? ` (${detail})` : ''}`;
}
