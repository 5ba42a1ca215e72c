// A search: from an address and back to one. Invalid values in an address are ignored.

export const KINDS = { cabin: 'Cabins', cottage: 'Cottages', loft: 'Lofts', boathouse: 'Boathouses', farmhouse: 'Farmhouses' };
export const ORDERS = { best: 'Recommended', cheap: 'Lowest price', dear: 'Highest price', rated: 'Best rated' };
export const PER_PAGE = 20;
export const MOST_GUESTS = 7;

const ANYTHING = { q: '', kind: '', upto: 0, guests: 1, order: 'best', page: 1 };

export function parseSearch(params) {
  return {
    q: (params.get('q') ?? '').trim().slice(0, 80),
    kind: oneOf(KINDS, params.get('kind')) ?? ANYTHING.kind,
    upto: whole(params.get('upto'), 1, 9999) ?? ANYTHING.upto,
    guests: whole(params.get('guests'), 1, MOST_GUESTS) ?? ANYTHING.guests,
    order: oneOf(ORDERS, params.get('order')) ?? ANYTHING.order,
    page: whole(params.get('page'), 1, 999) ?? ANYTHING.page,
  };
}

/** Writes only the values that differ from the default. `changes` are applied to the search, which then starts at its first page. */
export function formatSearch(search, changes = {}) {
  const wanted = { ...search, page: 1, ...changes };
  const params = new URLSearchParams(Object.entries(wanted).filter(([key, value]) => value !== ANYTHING[key]));
  return params.size > 0 ? `?${params}` : '';
}

/** The API's address for a search. */
export function apiPath({ page, ...search }) {
  const params = new URLSearchParams(Object.entries(search).filter(([key, value]) => value !== ANYTHING[key]));
  if (page > 1) params.set('from', (page - 1) * PER_PAGE);
  params.set('limit', PER_PAGE);
  return `/stays?${params}`;
}

export function isNarrowed({ q, kind, upto, guests }) {
  return Boolean(q || kind || upto || guests > 1);
}

function oneOf(table, value) {
  return value !== null && Object.hasOwn(table, value) ? value : undefined;
}

function whole(text, least, most) {
  if (text === null || !/^\d{1,4}$/.test(text)) return undefined;
  const number = Number(text);
  return number >= least && number <= most ? number : undefined;
}
