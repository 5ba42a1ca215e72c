// The browser's half: takes over a page from the server, or renders it from nothing where Hostler could only send the shell.
import { createRoot, hydrateRoot } from 'react-dom/client';
import { Data, readCarried } from './app/data.jsx';
import { Site } from './app/site.jsx';

const PATIENCE = 12_000;
const { base, from } = document.documentElement.dataset;

const site = <Site at={location.pathname + location.search} base={base} data={new Data(ask, readCarried)} from={from} files={FILES} />;
const options = { onRecoverableError: tell };

if (from === 'server') hydrateRoot(document, site, options);
else createRoot(document, options).render(site);

/** The API is on the page's own host: behind Hostler by a route, without it through the page's server. */
async function ask(path) {
  try {
    const answer = await fetch(`/api${path}`, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(PATIENCE) });
    return answer.ok ? { ok: true, value: await answer.json() } : { ok: false, status: answer.status };
  } catch {
    return { ok: false, status: 503 }; // no way to tell from here why; the page says that it cannot be reached
  }
}

/** What the server could not finish it has logged itself, and marked with a digest; all else is ours, such as a page that differs. */
function tell(error) {
  if (!error.digest) reportError(error);
}
