// Where this site begins: '' at the root of its host, or a path such as '/homes', from BASE_PATH. Knows no pages.

const BASE = (process.env.BASE_PATH ?? '').replace(/\/+$/, '');

/** The address of one of our paths, for a browser. */
export function under(path) {
  return BASE + path;
}

/** Our path of an address; undefined where it is not ours, and '' where it lacks the slash behind the base. */
export function within(pathname) {
  if (pathname === BASE) return '';
  return pathname.startsWith(`${BASE}/`) ? pathname.slice(BASE.length) : undefined;
}
