// The texts beside the map: the caller, the chosen place, and its surroundings. Knows the page's elements and sends no
// requests.

export const at = (id) => document.getElementById(id);

const MILE = 1.609344; // km
const usesMiles = /-(US|LR|MM|GB)\b/.test(navigator.language);

export function nameOf({ city, state }) {
  return state ? `${city}, ${state}` : city;
}

export function distance(km) {
  const value = usesMiles ? km / MILE : km;
  const digits = value < 10 ? 1 : 0;
  return `${value.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${usesMiles ? 'mi' : 'km'}`;
}

/** The facts about an address. `own`: it is the caller's. */
export function showFound(found, own) {
  at('you').replaceChildren(...(own ? ofYou(found) : ofAddress(found)));
}

function ofYou(found) {
  const { ip, type, isHere } = found;
  const name = nameOfFound(found);
  const pick = 'Type a town, or pick one:';
  if (type !== 'global') return [`You came from ${KINDS[type] ?? 'no address of the internet'}, `, strong(ip), `, and no database knows where that is. ${pick}`];
  if (!name) return ['The database does not know where ', strong(ip), ` is. ${pick}`];
  return ['You are probably in or near ', strong(name), `, says your address ${ip}.`, isHere ? '' : ` The codes here are American. ${pick}`];
}

function ofAddress(found) {
  const { ip, type, isHere } = found;
  const name = nameOfFound(found);
  if (type !== 'global') return [strong(ip), ` is ${KINDS[type] ?? 'no address of the internet'}: no database knows where that is.`];
  if (!name) return ['The database does not know where ', strong(ip), ' is.'];
  return [`${ip} is probably in or near `, strong(name), isHere ? '.' : '. The codes here are American.'];
}

const KINDS = { loopback: 'this very machine', private: 'a private network' };

const nameOfFound = ({ city, region, country }) => [city, region, country].filter(Boolean).join(', ');

export function showTrouble(words) {
  at('you').replaceChildren(words);
}

/** A row of towns to start with. */
export function showSuggestions(towns, chosen) {
  at('suggestions').hidden = false;
  at('suggestions').replaceChildren(...towns.map(({ name, code }) => {
    const item = document.createElement('li');
    item.append(button([name], () => chosen(code)));
    return item;
  }));
}

export function hideSuggestions() {
  at('suggestions').hidden = true;
}

export function showPlace(place) {
  at('place').hidden = false;
  at('place-title').replaceChildren(place.code ? strong(place.code) : '', ` ${nameOf(place)}`);
  const county = place.county && `County: ${place.county}`;
  at('place-line').replaceChildren([county, coordinates(place)].filter(Boolean).join(' · '));
}

/** Instead of a place, the reason why there is none. */
export function showNoPlace(words) {
  at('place').hidden = false;
  at('place-title').replaceChildren(words);
  at('place-line').replaceChildren();
}

export function hidePlace() {
  at('place').hidden = true;
}

/** `chosen` and `previewed` are called with one of them. */
export function showNear(codes, around, { chosen, previewed }) {
  at('near').hidden = false;
  at('near-title').textContent = `Codes around ${around}`;
  at('near-list').replaceChildren(...codes.map((one) => {
    const item = document.createElement('li');
    const own = button([strong(one.code), span(nameOf(one), one.others > 0 ? ` and ${one.others} more` : ''), small(distance(one.distance))], () => chosen(one.code));
    for (const name of ['pointerenter', 'focus']) own.addEventListener(name, () => previewed(one));
    for (const name of ['pointerleave', 'blur']) own.addEventListener(name, () => previewed());
    item.append(own);
    return item;
  }));
}

export function showAsked({ path, status, took }) {
  const link = document.createElement('a');
  link.href = `api/${path}`;
  link.append(code(`GET /${path}`));
  const time = took < 10 ? took.toFixed(1) : Math.round(took);
  at('asked').hidden = false;
  at('asked').replaceChildren(link, span(`${status} in ${time} ms`));
}

export function showCounted(prefix, count) {
  at('counted').hidden = prefix === '';
  const begin = prefix.length === 5 ? 'is' : count === 1 ? 'begins with' : 'begin with';
  at('counted').textContent = `${count.toLocaleString()} ${count === 1 ? 'code' : 'codes'} ${begin} ${prefix}`;
}

function coordinates({ lat, lng }) {
  return `${Math.abs(lat).toFixed(2)}° ${lat < 0 ? 'S' : 'N'} ${Math.abs(lng).toFixed(2)}° ${lng < 0 ? 'W' : 'E'}`;
}

function button(content, clicked) {
  const element = make('button', ...content);
  element.type = 'button';
  element.addEventListener('click', clicked);
  return element;
}

const strong = (text) => make('b', text);
const span = (...texts) => make('span', ...texts);
const small = (text) => make('small', text);
const code = (text) => make('code', text);

function make(tag, ...content) {
  const element = document.createElement(tag);
  element.append(...content);
  return element;
}
