// The path of this site: '' at the root of its host, or a path such as '/homes', from BASE_PATH. Knows no pages.

const BASE = (process.env.BASE_PATH ?? '').replace(/\/+$/, '');

/** The address of one of the site's paths, for a browser. */
export function under(path) {
  return BASE + path;
}

/** The site's path of an address. Undefined if the address is outside of the site, and '' if the slash after the base is missing. */
export function within(pathname) {
  if (pathname === BASE) return '';
  return pathname.startsWith(`${BASE}/`) ? pathname.slice(BASE.length) : undefined;
}
