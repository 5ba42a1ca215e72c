// What the page asks Hostler, as the page needs it. Knows the paths and fields of the services; nobody else here does.

const ASKED = 100; // post offices have dozens of codes in one place
const FOUND = 8;

/** Told of each answer: { path, status, took } with milliseconds, as the browser saw it. */
let onAnswer = () => {};
export const listen = (told) => (onAnswer = told);

/** Where the caller is, or the one at `address`. */
export async function locate(address) {
  const { body } = await ask(address ? `geo/${encodeURIComponent(address)}` : 'geo');
  const { ip, type, city, region, country, lat, lng } = body;
  return { ip, type, city, region: region?.name ?? null, country: country?.name ?? null, isHere: country?.code === 'US', lat, lng };
}

/** Places whose code begins with these digits, or whose name is like this text. */
export async function find(text, signal) {
  const [, name, state] = /^(.*?)(?:,\s*([a-z]{2}))?$/i.exec(text);
  const query = new URLSearchParams(/^\d+$/.test(text) ? { prefix: text } : { q: name, ...(state ? { state } : {}) });
  query.set('limit', FOUND);
  const { body } = await ask(`postal/us/search?${query}`, signal);
  return list(body).map(place);
}

export async function byCode(code) {
  const { body } = await ask(`postal/us/${encodeURIComponent(code)}`);
  return place(Array.isArray(body) ? body[0] : body);
}

/** The places around a point, nearest first, each with its distance in kilometres; `others` is how many more codes there are just there. */
export async function around({ lat, lng }) {
  const query = new URLSearchParams({ lat, lng, limit: ASKED });
  const { body } = await ask(`postal/near?${query}`);
  const places = new Map();
  for (const one of list(body).map(place)) {
    const key = `${one.lat} ${one.lng}`;
    if (places.has(key)) places.get(key).others += 1;
    else places.set(key, { ...one, others: 0 });
  }
  return [...places.values()];
}

function place({ code, city, state, county, lat, lng, distance_km: distance = null }) {
  return { code, city, state: state ?? null, county: county ?? null, lat, lng, distance };
}

const list = (body) => (Array.isArray(body) ? body : body.results);

async function ask(path, signal) {
  const began = performance.now();
  const answer = await fetch(`api/${path}`, { signal, headers: { accept: 'application/json' } });
  const body = await answer.json().catch(() => ({}));
  onAnswer({ path, status: answer.status, took: performance.now() - began });
  if (!answer.ok) throw Object.assign(new Error(body.detail ?? body.title ?? `${answer.status}`), { status: answer.status });
  return { body };
}
