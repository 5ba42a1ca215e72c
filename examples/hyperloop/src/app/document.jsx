// The document around every page: head, header, footer. Knows no address, because the browser's shell is made from it
// too.
import icon from '../styles/icon.svg';
import { Mark } from './icons.jsx';
import { NAME } from './names.js';

/**
 * `from` is "server" or "shell". A shell contains its styles (`css`), because under overload every further request is too much.
 * When the browser renders over it, the styles stay.
 */
export function Document({ base, from, files, css, children }) {
  return (
    <html lang="en" data-base={base} data-from={from}>
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="theme-color" content="#ffffff" media="(prefers-color-scheme: light)" />
        <meta name="theme-color" content="#0f1424" media="(prefers-color-scheme: dark)" />
        <link rel="icon" href={icon} type="image/svg+xml" />
        {from === 'server' && <link rel="stylesheet" href={`${base}/assets/${files.styles}`} />}
        {css && <style dangerouslySetInnerHTML={{ __html: css.page }} />}
        <noscript>
          {css ? <style dangerouslySetInnerHTML={{ __html: css.plain }} /> : <link rel="stylesheet" href={`${base}/assets/${files.plain}`} />}
        </noscript>
      </head>
      <body>
        <a className="skip" href="#main">
          Skip to the content
        </a>
        <header className="top">
          <div className="wide">
            <a className="brand" href={`${base}/`}>
              <Mark />
              <span>{NAME}</span>
            </a>
            <nav aria-label="Ideas">
              <a href={`${base}/?kind=boathouse`}>By the water</a>
              <a href={`${base}/?q=lofoten`}>Far north</a>
              <a href={`${base}/?guests=6`}>For six or more</a>
            </nav>
          </div>
        </header>
        {children}
        <footer className="bottom">
          <div className="wide">
            <p>
              <b>{NAME}</b> is an example: the houses are drawn, the hosts invented, and nothing can be booked.
            </p>
            <p className="how">{from === 'server' ? 'Rendered on the server, streamed in pieces' : 'Rendered in your browser, as the server was busy'}</p>
          </div>
        </footer>
      </body>
    </html>
  );
}

export function Title({ children }) {
  return <title>{`${children} · ${NAME}`}</title>;
}
