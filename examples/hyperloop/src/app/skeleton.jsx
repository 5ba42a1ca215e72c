// The content of the shell until the browser has rendered the page.
import { Document } from './document.jsx';

export function Skeleton({ base, css }) {
  return (
    <Document base={base} from="shell" css={css}>
      <main id="main" aria-busy="true">
        <noscript>
          <div className="trouble wide">
            <h1>One moment, please</h1>
            <p>So many people are here that this page has to be put together by your browser, which needs JavaScript for it. Or try again in a minute.</p>
          </div>
        </noscript>
        <div className="hero bone" />
        <div className="wide">
          <p className="unseen" role="status">
            Loading
          </p>
          <div className="finder bone" />
          <ul className="cards" aria-hidden="true">
            {Array.from({ length: 8 }, (_, index) => (
              <li key={index} className="bones">
                <span className="card-picture" />
                <span className="middle" />
                <span className="short" />
              </li>
            ))}
          </ul>
        </div>
      </main>
    </Document>
  );
}
