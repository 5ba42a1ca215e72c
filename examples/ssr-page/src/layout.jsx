// The frame around every page: document head, header, footer.
import { under } from './base.js';
import { Icon, IconSymbols } from './icons.jsx';
import { Lights } from './picture.jsx';
import style from './style.css';

/** The server replaces this after the render, because a page cannot contain the time of its own render. */
export const STAMP = '<!--rendered-by-->';

export function Layout({ title, search, children }) {
  return (
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="description" content="Cabins, cottages and lighthouses near the water." />
        <title>{`${title} · Wayside`}</title>
        <link rel="icon" href={`data:image/svg+xml,${encodeURIComponent(FAVICON)}`} />
        <link rel="preload" href={under('/figtree.woff2')} as="font" type="font/woff2" crossOrigin="" />
        <style dangerouslySetInnerHTML={{ __html: STYLE }} />
      </head>
      <body>
        <svg className="shared" aria-hidden="true">
          <defs>
            <IconSymbols />
            <Lights />
          </defs>
        </svg>
        <Header search={search} />
        {children}
        <Footer />
      </body>
    </html>
  );
}

/** Its addresses start at the root, but the site may start below it. */
const STYLE = style.replaceAll('url(/', `url(${under('/')}`);

const FAVICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#1f5c52"/><path d="M7 21l9-12 9 12M11 21v3h10v-3" fill="none" stroke="#f6efe2" stroke-width="2.6" stroke-linejoin="round"/></svg>';

function Header({ search }) {
  return (
    <header className="top">
      <div className="wide">
        <a className="brand" href={under('/')}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="9" />
            <path d="M7 21l9-12 9 12M11 21v3h10v-3" />
          </svg>
          Wayside
        </a>
        <form className="finder" action={under('/')} method="get" role="search">
          <span>
            <Icon name="pin" />
            Near the water
          </span>
          <span>
            <Icon name="calendar" />
            12–18 June
          </span>
          <label>
            <Icon name="people" />
            <select name="guests" defaultValue={search?.guests ?? 2} aria-label="Guests">
              {[1, 2, 3, 4, 5, 6, 7, 8].map((count) => (
                <option key={count} value={count}>
                  {count === 1 ? '1 guest' : `${count} guests`}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" aria-label="Search">
            <Icon name="search" />
            <span>Search</span>
          </button>
        </form>
        <nav className="links" aria-label="Selections">
          <a href={under('/?order=rating')}>Best rated</a>
          <a href={under('/?with=pets')}>With pets</a>
        </nav>
      </div>
    </header>
  );
}

function Footer() {
  return (
    <footer className="bottom">
      <div className="wide">
        <p>
          <b>Wayside</b> is an example: no home here exists. Every page is rendered for you by React on the server.
        </p>
        <p className="stamp" dangerouslySetInnerHTML={{ __html: STAMP }} />
      </div>
    </footer>
  );
}
