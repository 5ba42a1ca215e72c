// The browser's part: hydrates a page from the server, or renders it if Hostler could only send the shell.
import { createRoot, hydrateRoot } from 'react-dom/client';
import { Data, readCarried } from './app/data.jsx';
import { Site } from './app/site.jsx';

const TIMEOUT = 12_000;
const { base, from } = document.documentElement.dataset;

const site = <Site at={location.pathname + location.search} base={base} data={new Data(ask, readCarried)} from={from} files={FILES} />;
const options = { onRecoverableError: tell };

if (from === 'server') hydrateRoot(document, site, options);
else createRoot(document, options).render(site);

/** The API is on the page's own host: behind Hostler by a route, otherwise through the page's server. */
async function ask(path) {
  try {
    const answer = await fetch(`/api${path}`, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(TIMEOUT) });
    return answer.ok ? { ok: true, value: await answer.json() } : { ok: false, status: answer.status };
  } catch {
    return { ok: false, status: 503 }; // the reason is not known here; the page reports that the API is not reachable
  }
}

/**
 * The server has logged and marked its own errors with a digest. All other errors belong to the browser, for example a
 * difference between the renders.
 */
function tell(error) {
  if (!error.digest) reportError(error);
}
