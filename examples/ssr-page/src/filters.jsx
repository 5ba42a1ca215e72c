// The filters of the search: kinds as links, the rest as one plain form that works without JavaScript.
import { under } from './base.js';
import { AMENITIES, KINDS } from './catalogue.js';
import { Icon } from './icons.jsx';
import { DEFAULT_COUNT, HIGHEST_PRICE, address } from './search.js';

export function Kinds({ search, counts }) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return (
    <nav className="kinds wide" aria-label="Kind of home">
      <a href={address(search, { kind: undefined })} aria-current={search.kind ? undefined : 'true'}>
        All homes <span>{all}</span>
      </a>
      {KINDS.map((kind) => (
        <a key={kind} href={address(search, { kind })} aria-current={search.kind === kind ? 'true' : undefined}>
          {kind} <span>{counts[kind] ?? 0}</span>
        </a>
      ))}
    </nav>
  );
}

export function Filters({ search, prices }) {
  return (
    <aside className="filters">
      <form action={under('/')} method="get">
        <Kept search={search} />
        <fieldset>
          <legend>Price a night</legend>
          <Histogram heights={prices} upTo={search.upTo} />
          <input type="range" name="upto" min="40" max={HIGHEST_PRICE} step="10" defaultValue={search.upTo} aria-label="Highest price a night" />
          <p className="range">
            <span>€40</span>
            <span>{search.upTo === HIGHEST_PRICE ? `€${HIGHEST_PRICE}+` : `up to €${search.upTo}`}</span>
          </p>
        </fieldset>
        <fieldset>
          <legend>The home has</legend>
          {Object.entries(AMENITIES).map(([name, label]) => (
            <label key={name} className="check">
              <input type="checkbox" name="with" value={name} defaultChecked={search.amenities.includes(name)} />
              <Icon name={name} />
              {label}
            </label>
          ))}
        </fieldset>
        <div className="filter-buttons">
          <button type="submit">Show homes</button>
          <a href={under('/')}>Clear all</a>
        </div>
      </form>
    </aside>
  );
}

/** The parts of the search that this form does not contain. Without them, sending the form would reset them. */
function Kept({ search }) {
  return (
    <>
      {search.kind && <input type="hidden" name="kind" value={search.kind} />}
      {search.order !== 'best' && <input type="hidden" name="order" value={search.order} />}
      {search.guests !== 2 && <input type="hidden" name="guests" value={search.guests} />}
      {search.count !== DEFAULT_COUNT && <input type="hidden" name="count" value={search.count} />}
    </>
  );
}

function Histogram({ heights, upTo }) {
  const highest = Math.max(1, ...heights);
  const step = HIGHEST_PRICE / heights.length;
  return (
    <svg className="histogram" viewBox={`0 0 ${heights.length * 8} 48`} preserveAspectRatio="none" aria-hidden="true">
      {heights.map((height, index) => {
        const tall = Math.round((height / highest) * 46) + 2;
        return <rect key={index} className={index * step < upTo ? 'in' : 'out'} x={index * 8 + 1} y={48 - tall} width="6" height={tall} />;
      })}
    </svg>
  );
}
