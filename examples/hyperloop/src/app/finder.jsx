// The search form. It works as a plain form, and with scripts it searches at each change.
import { useEffect, useLayoutEffect, useRef } from 'react';
import { useSite } from './context.js';
import { euros, plural } from './format.js';
import { Icon } from './icons.jsx';
import { MOST_GUESTS, formatSearch, parseSearch } from './search.js';

const STEP = 10;

/** `search` is the search on the page, `next` the one that was requested since. */
export function Finder({ search, next, prices }) {
  const { base } = useSite();
  const { form, ask } = useForm(search, prices);
  const onSubmit = (event) => {
    event.preventDefault();
    ask();
    document.getElementById('results').scrollIntoView();
  };
  const onInput = (event) => ask(event.target.name);
  return (
    <form className="finder" role="search" aria-label="Stays" action={`${base}/`} ref={form} onSubmit={onSubmit} onInput={onInput}>
      {next.kind && <input type="hidden" name="kind" value={next.kind} />}
      {next.order !== 'best' && <input type="hidden" name="order" value={next.order} />}
      <label className="field words">
        <span>Where or what</span>
        <input
          name="q"
          type="search"
          defaultValue={search.q}
          placeholder="Norway, a lake, a boathouse"
          maxLength={80}
          autoComplete="off"
          enterKeyHint="search"
        />
      </label>
      <Guests guests={search.guests} />
      <Price upto={next.upto || prices.highest} prices={prices} />
      <button type="submit">
        <Icon name="search" />
        <span>Search</span>
      </button>
    </form>
  );
}

/** The form, and `ask(field)`, which searches for the form's current values. */
function useForm(search, prices) {
  const { base, go } = useSite();
  const form = useRef(null);
  const shown = formatSearch(search, { page: search.page });
  const own = useRef({ asked: new Set(), last: shown }); // the recent searches of the form itself, and their field

  /** One entry in the history for each field, not for each letter. */
  const ask = (field) => {
    const params = new URLSearchParams(new FormData(form.current));
    if (Number(params.get('upto')) >= prices.highest) params.delete('upto');
    const wanted = formatSearch(parseSearch(params));
    const { asked, last, field: before } = own.current;
    if (wanted === last) return;
    own.current = { asked: asked.add(wanted), last: wanted, field };
    go(`${base}/${wanted}`, { replace: field !== undefined && field === before });
  };
  useLayoutEffect(() => {
    const { asked, last } = own.current;
    if (shown === last) asked.clear();
    if (shown === last || asked.has(shown)) return; // it came from this form, and the user may have typed more since
    own.current = { asked: new Set(), last: shown };
    const { q, guests, upto } = form.current.elements;
    [q.value, guests.value, upto.value] = [search.q, search.guests, search.upto || prices.highest];
  }, [shown]); // not at other renders, because the form is ahead of them
  useEffect(() => {
    if (form.current.elements.q.value.trim() !== search.q) ask('q'); // typed before the script had loaded
  }, []);
  return { form, ask };
}

function Guests({ guests }) {
  return (
    <label className="field">
      <span>Who</span>
      <select name="guests" defaultValue={guests}>
        {Array.from({ length: MOST_GUESTS }, (_, index) => (
          <option key={index} value={index + 1}>
            {index === 0 ? 'Any number' : `${plural(index + 1, 'guest')}${index + 1 === MOST_GUESTS ? '' : ' or more'}`}
          </option>
        ))}
      </select>
    </label>
  );
}

function Price({ upto, prices }) {
  return (
    <label className="field price">
      <span>
        A night <output>{upto < prices.highest ? `up to ${euros(upto)}` : 'at any price'}</output>
      </span>
      <Bars prices={prices} upto={upto} />
      <input name="upto" type="range" min={prices.lowest + STEP} max={prices.highest} step={STEP} defaultValue={upto} />
    </label>
  );
}

/** The number of stays at each price. */
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
