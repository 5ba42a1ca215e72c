// The search form: a plain form that sends its fields, and in a browser with scripts one that answers at each change.
import { useEffect, useRef } from 'react';
import { useSite } from './context.js';
import { euros, plural } from './format.js';
import { Icon } from './icons.jsx';
import { MOST_GUESTS, formatSearch, parseSearch } from './search.js';

const STEP = 10;

export function Finder({ search, prices }) {
  const { base, go } = useSite();
  const form = useRef(null);
  const own = useRef({ asked: new Set() }); // what this form itself asked for of late, and in which field
  const { kind, order } = search;

  const shown = formatSearch(search, { page: search.page });
  useEffect(() => {
    const { asked, last } = own.current;
    if (shown === last) asked.clear();
    if (shown === last || asked.has(shown)) return; // it came from here, and somebody may have typed on since
    own.current = { asked: new Set(), last: shown };
    const { q, guests, upto } = form.current.elements;
    [q.value, guests.value, upto.value] = [search.q, search.guests, search.upto || prices.highest];
  }, [shown]); // and not at other renders: the form is ahead of them

  /** One step of history for each field, not for each letter. */
  const ask = (field) => {
    const params = new URLSearchParams(new FormData(form.current));
    if (Number(params.get('upto')) >= prices.highest) params.delete('upto');
    const wanted = formatSearch(parseSearch(params));
    const { asked, last, field: before } = own.current;
    if (wanted === last) return;
    own.current = { asked: asked.add(wanted), last: wanted, field };
    go(`${base}/${wanted}`, { replace: field !== undefined && field === before });
  };
  const onSubmit = (event) => {
    event.preventDefault();
    ask();
    document.getElementById('results').scrollIntoView();
  };

  return (
    <form className="finder" role="search" aria-label="Stays" action={`${base}/`} ref={form} onSubmit={onSubmit} onInput={(event) => ask(event.target.name)}>
      {kind && <input type="hidden" name="kind" value={kind} />}
      {order !== 'best' && <input type="hidden" name="order" value={order} />}
      <label className="field words">
        <span>Where or what</span>
        <input name="q" type="search" defaultValue={search.q} placeholder="Norway, a lake, a boathouse" maxLength={80} autoComplete="off" enterKeyHint="search" />
      </label>
      <label className="field">
        <span>Who</span>
        <select name="guests" defaultValue={search.guests}>
          {Array.from({ length: MOST_GUESTS }, (_, index) => (
            <option key={index} value={index + 1}>
              {index === 0 ? 'Any number' : `${plural(index + 1, 'guest')}${index + 1 === MOST_GUESTS ? '' : ' or more'}`}
            </option>
          ))}
        </select>
      </label>
      <label className="field price">
        <span>
          A night <output>{search.upto && search.upto < prices.highest ? `up to ${euros(search.upto)}` : 'at any price'}</output>
        </span>
        <Bars prices={prices} upto={search.upto || prices.highest} />
        <input name="upto" type="range" min={prices.lowest + STEP} max={prices.highest} step={STEP} defaultValue={search.upto || prices.highest} />
      </label>
      <button type="submit">
        <Icon name="search" />
        <span>Search</span>
      </button>
    </form>
  );
}

/** How many stays there are at each price. */
function Bars({ prices: { lowest, highest, bars }, upto }) {
  const most = Math.max(1, ...bars);
  const wide = (highest - lowest) / bars.length;
  return (
    <svg className="bars" viewBox={`0 0 ${bars.length * 10} 20`} preserveAspectRatio="none" aria-hidden="true">
      {bars.map((count, index) => (
        <rect key={index} className={lowest + index * wide < upto ? 'in' : 'out'} x={index * 10 + 1} width="8" y={20 - (20 * count) / most} height={(20 * count) / most} rx="1" />
      ))}
    </svg>
  );
}
