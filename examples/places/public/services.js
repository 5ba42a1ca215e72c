// The page's requests to Hostler. The only file that knows the paths and fields of the services.

const ASKED = 200; // post offices may have dozens of codes in one place
const FOUND = 8;

/** Called for each response with { path, status, took }, in milliseconds as the browser measures them. */
let onAnswer = () => {};
export const listen = (told) => (onAnswer = told);

/** The place of the caller, or of `address`. */
export async function locate(address) {
  const { body } = await ask(address ? `geo/${encodeURIComponent(address)}` : 'geo');
  const { ip, type, city, region, country, lat, lng } = body;
  return { ip, type, city, region: region.name, country: nameOfCountry(country), isHere: country.code === 'US', lat, lng };
}

/** Not every database has names, but browsers know all of them. */
function nameOfCountry({ code, name }) {
  return name ?? (code && new Intl.DisplayNames(undefined, { type: 'region' }).of(code));
}

/** Places with codes that begin with these digits, or with a name like this text, which may end in a state. */
export async function find(text, signal) {
  const [, name, state] = /^(.*),\s*([a-z]{2})$/i.exec(text) ?? [];
  const query = new URLSearchParams(/^\d+$/.test(text) ? { prefix: text } : state ? { q: name, state } : { q: text });
  query.set('limit', FOUND);
  try {
    const { body } = await ask(`postal/us/search?${query}`, signal);
    return body.map(place);
  } catch (error) {
    if (error.status === 400 || error.status === 404) return []; // no such state, or not a possible name
    throw error;
  }
}

export async function byCode(code) {
  const { body } = await ask(`postal/us/${encodeURIComponent(code)}`);
  return place(Array.isArray(body) ? body[0] : body); // a list if a code has several places
}

/** The places around a point, nearest first, each with its distance in kilometres. `others` is the number of further codes at the same point. */
export async function around({ lat, lng }) {
  const query = new URLSearchParams({ lat, lng, limit: ASKED, fields: 'code,city,state,lat,lng,distance_km' });
  const { body } = await ask(`postal/near?${query}`.replaceAll('%2C', ','));
  const places = new Map();
  for (const one of body.map(place)) {
    const key = `${one.lat} ${one.lng}`;
    if (places.has(key)) places.get(key).others += 1;
    else places.set(key, { ...one, others: 0 });
  }
  return [...places.values()];
}

/** `codes`: the number of codes with this name. */
function place({ code, codes = 1, city, state, county, lat, lng, distance_km: distance }) {
  return { code, codes, city, state, county, lat, lng, distance };
}

async function ask(path, signal) {
  const began = performance.now();
  const answer = await fetch(`api/${path}`, { signal, headers: { accept: 'application/json' } });
  const body = await answer.json().catch(() => ({}));
  onAnswer({ path, status: answer.status, took: performance.now() - began });
  if (!answer.ok) throw Object.assign(new Error(body.detail ?? body.title ?? `${answer.status}`), { status: answer.status });
  return { body };
}
