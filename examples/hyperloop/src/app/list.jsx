// The page of stays: the search, the results, and links to other searches.
import { Card } from './card.jsx';
import { useSite } from './context.js';
import { Carried, useAnswer } from './data.jsx';
import { Title } from './document.jsx';
import { Finder } from './finder.jsx';
import { euros, plural } from './format.js';
import { Icon } from './icons.jsx';
import { View } from './picture.jsx';
import { KINDS, ORDERS, PER_PAGE, formatSearch, isNarrowed } from './search.js';
import { Unreachable } from './trouble.jsx';

/**
 * `next` is the search that was requested since. The form shows it at once and builds on it, so that no choice is lost. The
 * results follow when they have come.
 */
export function List({ search, next, path }) {
  const { base } = useSite();
  const answer = useAnswer(path);
  if (!answer.ok) {
    return (
      <>
        <Unreachable path={path} here={`${base}/${formatSearch(search, { page: search.page })}`} />
        <Carried path={path} answer={answer} />
      </>
    );
  }
  const found = answer.value;
  const wanted = next.upto >= found.prices.highest ? { ...next, upto: 0 } : next; // a form without scripts always sends a price
  return (
    <main id="main">
      <Title>{titleOf(search)}</Title>
      <meta name="description" content="Cabins, boathouses and farmhouses at the edges of the map, each with somebody who has the key." />
      <section className="hero" aria-labelledby="promise">
        <View />
        <div className="wide">
          <h1 id="promise" tabIndex={-1}>
            Go a little farther.
          </h1>
          <p>Houses at the edges of the map, and somebody who has the key.</p>
        </div>
      </section>
      <div className="wide">
        <Finder search={search} next={wanted} prices={found.prices} />
        <Kinds search={wanted} kinds={found.kinds} />
        <section id="results" aria-labelledby="count">
          <div className="heading">
            <h2 id="count" tabIndex={-1} aria-live="polite">
              {plural(found.total, 'stay')}
            </h2>
            <Chips search={wanted} />
            <Orders search={wanted} />
          </div>
          {found.stays.length > 0 ? <Cards stays={found.stays} /> : <Nothing />}
          <Pages search={search} total={found.total} />
        </section>
      </div>
      <Carried path={path} answer={answer} />
    </main>
  );
}

function Cards({ stays }) {
  return (
    <ul className="cards">
      {stays.map((stay) => (
        <Card key={stay.id} stay={stay} />
      ))}
    </ul>
  );
}

function Kinds({ search, kinds }) {
  const { base } = useSite();
  const all = { kind: '', count: kinds.reduce((sum, { count }) => sum + count, 0) };
  return (
    <nav className="kinds" aria-label="Kinds of stay">
      <ul>
        {[all, ...kinds].map(({ kind, count }) => (
          <li key={kind}>
            <a href={`${base}/${formatSearch(search, { kind })}`} aria-current={kind === search.kind ? 'true' : undefined}>
              <Icon name={kind || 'all'} />
              {kind ? KINDS[kind] : 'Everything'} <span>{count}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Orders({ search }) {
  const { base } = useSite();
  return (
    <nav className="orders" aria-label="Order">
      <ul>
        {Object.entries(ORDERS).map(([order, name]) => (
          <li key={order}>
            <a href={`${base}/${formatSearch(search, { order })}`} aria-current={order === search.order ? 'true' : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The filters of the search, each with a link that removes it. */
function Chips({ search }) {
  const { base } = useSite();
  if (!isNarrowed(search)) return null;
  const chips = [
    search.q && { name: `“${search.q}”`, without: { q: '' } },
    search.kind && { name: KINDS[search.kind], without: { kind: '' } },
    search.guests > 1 && { name: `${search.guests} or more guests`, without: { guests: 1 } },
    search.upto > 0 && { name: `up to ${euros(search.upto)}`, without: { upto: 0 } },
  ].filter(Boolean);
  return (
    <ul className="chips">
      {chips.map(({ name, without }) => (
        <li key={name}>
          <a href={`${base}/${formatSearch(search, without)}`} aria-label={`Remove: ${name}`}>
            {name}
            <Icon name="close" />
          </a>
        </li>
      ))}
    </ul>
  );
}

function Nothing() {
  return (
    <div className="nothing">
      <p>No house is quite like that. A little more money, or one guest less?</p>
      <a className="button" href={`${useSite().base}/`}>
        See all stays
      </a>
    </div>
  );
}

function Pages({ search, total }) {
  const { base } = useSite();
  const last = Math.ceil(total / PER_PAGE);
  if (last < 2) return null;
  const link = (page) => `${base}/${formatSearch(search, { page })}`;
  return (
    <nav className="pages" aria-label="Pages">
      {search.page > 1 && (
        <a href={link(search.page - 1)} rel="prev">
          <Icon name="left" /> Earlier
        </a>
      )}
      <span>
        Page {search.page} of {last}
      </span>
      {search.page < last && (
        <a href={link(search.page + 1)} rel="next">
          Farther <Icon name="right" />
        </a>
      )}
    </nav>
  );
}

function titleOf({ q, kind }) {
  const what = kind ? KINDS[kind] : 'Stays';
  return q ? `${what} for “${q}”` : kind ? what : 'Stays at the edges of the map';
}
