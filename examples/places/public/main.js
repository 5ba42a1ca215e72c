// The page: connects the search, the map and the panel with Hostler's services. The address after # is the current code.
import { Combobox } from './combobox.js';
import { DotMap } from './map.js';
import { at, distance, hidePlace, hideSuggestions, nameOf, showAsked, showCounted, showFound, showNear, showNoPlace, showPlace, showSuggestions, showTrouble } from './panel.js';
import { isOnMap } from './projection.js';
import * as services from './services.js';

const NEAR = 12;
const TOWNS = [
  { name: 'Portland, OR', code: '97209' },
  { name: 'Minneapolis, MN', code: '55455' },
  { name: 'Brooklyn, NY', code: '11201' },
  { name: 'Fairbanks, AK', code: '99701' },
  { name: 'Hilo, HI', code: '96720' },
];
/** Why there is no answer about another address. */
const REFUSALS = { 400: 'That is not an IP address.', 403: 'From where you are, you may ask for your own address only.' };

const OUT_OF_REACH = 'The codes cannot be asked at the moment.';

const map = new DotMap(at('map'), { chosen: go });
const search = new Combobox(
  { input: at('search'), list: at('found'), note: at('search-note') },
  {
    find: services.find,
    describe: (place) => ({ name: nameOf(place), detail: place.codes > 1 ? `${place.codes} codes` : place.code }),
    typed: (text) => light(/^\d{1,5}$/.test(text) ? text : ''),
    previewed: preview,
    chosen: (place) => go(place.code),
  },
);

services.listen(showAsked);
at('closer').addEventListener('click', () => map.view.flyTo({ ...map.view, scale: map.view.scale * 2.5 }));
at('farther').addEventListener('click', () => map.view.flyTo({ ...map.view, scale: map.view.scale / 2.5 }));
at('whole').addEventListener('click', () => map.view.home());
at('address-form').addEventListener('submit', (event) => {
  event.preventDefault();
  findPerson(at('address').value.trim());
});
addEventListener('hashchange', visitCode);

loadDots();
visitCode();
findPerson();

async function loadDots() {
  try {
    const answer = await fetch('data/dots.json');
    map.load(await answer.json());
  } catch (error) {
    console.warn(error); // the list shows a message
  }
}

/** The caller, or the person with this address. */
async function findPerson(address) {
  let found;
  try {
    found = await services.locate(address);
  } catch (error) {
    if (address) return showTrouble(REFUSALS[error.status] ?? 'There is no answer at the moment.');
    showTrouble('Where you are cannot be said at the moment. Type a town, or pick one:');
    return showSuggestions(TOWNS, go);
  }
  showFound(found, !address);
  if (found.lat == null || !isOnMap(found.lat, found.lng)) return address || showSuggestions(TOWNS, go);
  hideSuggestions();
  map.mark({ you: { ...found, label: address ? found.ip : 'You' } });
  if (address || !codeInAddress()) await visit(found);
}

function codeInAddress() {
  return /^#(\d{5})$/.exec(location.hash)?.[1];
}

/** A new entry in the browser's history. `hashchange` does the rest. */
function go(code) {
  if (codeInAddress() === code) visitCode();
  else location.hash = code;
}

async function visitCode() {
  const code = codeInAddress();
  if (!code) return;
  try {
    await visit(await services.byCode(code));
  } catch (error) {
    if (codeInAddress() === code) showNoPlace(error.status === 404 ? `There is no postal code ${code}.` : OUT_OF_REACH);
  }
}

async function visit(place) {
  try {
    await lookAt(place);
  } catch (error) {
    console.warn(error);
    showNoPlace(OUT_OF_REACH);
  }
}

let latest = 0;

async function lookAt(place) {
  const own = (latest += 1);
  light('');
  const near = (await services.around(place)).filter(({ lat, lng }) => lat !== place.lat || lng !== place.lng).slice(0, NEAR);
  if (own !== latest) return; // another place was chosen meanwhile
  if (place.code) showPlace(place);
  else hidePlace();
  showNear(near, place.city ?? 'you', { chosen: go, previewed: preview });
  map.mark({ place: place.code ? { ...place, label: `${place.code} ${place.city}` } : { ...place, label: place.city ?? '' }, near: near.map((one) => ({ ...one, label: one.code })), preview: undefined });
  map.flyTo(place, near);
  const [nearest] = near;
  at('map').setAttribute('aria-label', `Map of the codes around ${place.city ?? 'you'}${nearest ? `; the nearest is ${nearest.code}, ${distance(nearest.distance)} away` : ''}`);
}

function preview(place) {
  map.mark({ preview: place && { ...place, label: place.code ? `${place.code} ${place.city}` : nameOf(place) } });
}

function light(prefix) {
  showCounted(prefix, map.light(prefix));
}

search.clear();
