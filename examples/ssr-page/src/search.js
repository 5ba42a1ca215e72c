// From a query string to the matching homes. Knows the catalogue, nothing of React or HTTP.
import { under } from './base.js';
import { AMENITIES, KINDS, catalogue } from './catalogue.js';

export const DEFAULT_COUNT = 40;
export const HIGHEST_PRICE = 300;
export const ORDERS = { best: 'Recommended', price: 'Lowest price', rating: 'Best rated' };

const BY = {
  best: (a, b) => score(b) - score(a) || a.id - b.id,
  price: (a, b) => a.nightly - b.nightly || a.id - b.id,
  rating: (a, b) => (b.rating ?? 0) - (a.rating ?? 0) || b.reviews - a.reviews || a.id - b.id,
};

/** The result is always a valid search, whatever the query contains. */
export function parseSearch(params) {
  return {
    kind: oneOf(KINDS, params.get('kind')),
    order: oneOf(Object.keys(ORDERS), params.get('order')) ?? 'best',
    amenities: params.getAll('with').filter((name) => Object.hasOwn(AMENITIES, name)),
    guests: clamped(params.get('guests'), { low: 1, high: 8, otherwise: 2 }),
    upTo: clamped(params.get('upto'), { low: 40, high: HIGHEST_PRICE, otherwise: HIGHEST_PRICE }),
    count: clamped(params.get('count'), { low: 1, high: catalogue.length, otherwise: DEFAULT_COUNT }),
  };
}

export function find(search) {
  const fitting = catalogue.filter(
    (home) =>
      home.guests >= search.guests &&
      (search.upTo === HIGHEST_PRICE || home.nightly <= search.upTo) &&
      search.amenities.every((name) => home.amenities.includes(name)),
  );
  const matching = fitting.filter((home) => !search.kind || home.kind === search.kind);
  const sorted = matching.sort(BY[search.order]);
  return {
    homes: sorted.slice(0, search.count),
    total: matching.length,
    kinds: countBy(fitting, (home) => home.kind),
    prices: histogram(matching),
  };
}

/** The query string of a search with changes. Values that equal the default are left out. */
export function address(search, changes = {}) {
  const next = { ...search, ...changes };
  const params = new URLSearchParams();
  if (next.kind) params.set('kind', next.kind);
  if (next.order !== 'best') params.set('order', next.order);
  for (const name of next.amenities) params.append('with', name);
  if (next.guests !== 2) params.set('guests', next.guests);
  if (next.upTo !== HIGHEST_PRICE) params.set('upto', next.upTo);
  if (next.count !== DEFAULT_COUNT) params.set('count', next.count);
  const text = params.toString();
  return under(text ? `/?${text}` : '/');
}

function score(home) {
  return (home.rating ?? 4.6) * 20 + Math.log1p(home.reviews) - home.nightly / 40;
}

function histogram(homes, bars = 26) {
  const heights = new Array(bars).fill(0);
  for (const home of homes) {
    heights[Math.min(bars - 1, Math.floor((home.nightly / HIGHEST_PRICE) * bars))] += 1;
  }
  return heights;
}

function countBy(homes, key) {
  const counts = {};
  for (const home of homes) counts[key(home)] = (counts[key(home)] ?? 0) + 1;
  return counts;
}

function oneOf(values, value) {
  return values.includes(value) ? value : undefined;
}

function clamped(text, { low, high, otherwise }) {
  const number = Number.parseInt(text ?? '', 10);
  return Number.isNaN(number) ? otherwise : Math.min(high, Math.max(low, number));
}
