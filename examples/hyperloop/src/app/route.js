// From an address to its page and the data for it. Knows neither React nor HTTP.
import { apiPath, parseSearch } from './search.js';

/**
 * `at` is a path with its query, as text. `needs` must be known before anything is shown, and decides the status. `later` may
 * come while the page is already visible.
 */
export function routeOf(at, base) {
  const { pathname, searchParams } = new URL(`http://page${at}`); // not as a relative address, because //evil.example/6 is a path too
  const path = pathname === base ? '/' : pathname.startsWith(`${base}/`) ? pathname.slice(base.length) : undefined;
  if (path === '/') {
    const search = parseSearch(searchParams);
    return { name: 'list', search, needs: apiPath(search), later: [] };
  }
  const id = /^\/([1-9]\d{0,8})$/.exec(path ?? '')?.[1];
  if (!id) return { name: 'missing', later: [] };
  return {
    name: 'stay',
    id,
    photo: small(searchParams.get('photo'), 5),
    nights: small(searchParams.get('nights'), 28) ?? 4,
    needs: `/stays/${id}`,
    later: [reviewsPath(id), calendarPath(id)],
  };
}

export const reviewsPath = (id) => `/stays/${id}/reviews`;
export const calendarPath = (id) => `/stays/${id}/calendar`;

/** The status of a page before it begins. */
export function statusOf(route, answer) {
  if (route.name === 'missing') return 404;
  if (answer.ok) return 200;
  return answer.status === 404 ? 404 : 503;
}

function small(text, most) {
  const number = /^\d{1,2}$/.test(text ?? '') ? Number(text) : 0;
  return number >= 1 && number <= most ? number : undefined;
}
