// From an address to a rendered page. Knows React and the data, nothing of HTTP.
import { renderToString } from 'react-dom/server';
import { within } from './base.js';
import { catalogue } from './catalogue.js';
import { Home, NotFound } from './home.jsx';
import { Results } from './results.jsx';
import { find, parseSearch } from './search.js';

export { STAMP } from './layout.jsx';

/** The same address always gives the same text: the render uses no clock, process data or random numbers. */
export function render(url) {
  const { status, page } = choose(url);
  return { status, html: `<!doctype html>${renderToString(page)}` };
}

function choose({ pathname, searchParams }) {
  const path = within(pathname);
  if (path === '/') {
    const search = parseSearch(searchParams);
    return { status: 200, page: <Results search={search} found={find(search)} /> };
  }
  const home = catalogue.find(({ id }) => path === `/homes/${id}`);
  return home ? { status: 200, page: <Home home={home} /> } : { status: 404, page: <NotFound /> };
}
