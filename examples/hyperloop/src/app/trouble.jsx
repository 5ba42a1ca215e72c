// Pages and parts for errors: not found, not reachable, broken. Each states only what is known.
import { useSite } from './context.js';
import { Title } from './document.jsx';
import { Night } from './picture.jsx';

export function Missing() {
  return (
    <Trouble title="Nothing here" code="404" text="There is no page at this address. It may have moved, or the link has a slip in it.">
      <HomeLink />
    </Trouble>
  );
}

export function Broken() {
  return (
    <Trouble title="This page broke" code="500" text="That is our fault, not yours, and we have made a note of it. The other pages should work.">
      <HomeLink />
    </Trouble>
  );
}

export function Unreachable({ path, here }) {
  return (
    <Trouble title="Our stays cannot be reached" code="503" text="The system that knows them does not answer at the moment. This is usually over within a minute.">
      <Retry path={path} here={here} />
    </Trouble>
  );
}

/** In place of a part of a page. The rest is not affected. */
export function PartUnreachable({ what, path, here }) {
  return (
    <div className="part-trouble" role="status">
      <p>{what} cannot be loaded at the moment.</p>
      <Retry path={path} here={here} />
    </div>
  );
}

export function PartBroken({ what }) {
  return (
    <div className="part-trouble" role="status">
      <p>{what} cannot be shown: something in them broke on our side.</p>
    </div>
  );
}

/** A link to the same page that fetches again, without a reload where possible. */
function Retry({ path, here }) {
  const { reload } = useSite();
  const again = (event) => {
    event.preventDefault();
    reload(path);
  };
  return (
    <a className="button" href={here} onClick={again}>
      Try again
    </a>
  );
}

function HomeLink() {
  return (
    <a className="button" href={`${useSite().base}/`}>
      All stays
    </a>
  );
}

function Trouble({ title, code, text, children }) {
  return (
    <main id="main" className="trouble wide">
      <Title>{title}</Title>
      <meta name="robots" content="noindex" />
      <div className="view">
        <Night />
      </div>
      <p className="code">{code}</p>
      <h1 tabIndex={-1}>{title}</h1>
      <p>{text}</p>
      {children}
    </main>
  );
}
