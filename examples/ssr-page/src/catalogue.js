// The homes: generated at the start from a fixed seed, so that every worker has the same data.
import { seeded } from './random.js';

const SIZE = 480;
const NIGHTS = 6;
const DAY = 86_400_000;

export const KINDS = ['Cabin', 'Cottage', 'Loft', 'Boathouse', 'Farmhouse', 'Lighthouse'];

export const AMENITIES = {
  wifi: 'Wi-Fi',
  kitchen: 'Kitchen',
  sauna: 'Sauna',
  fireplace: 'Fireplace',
  parking: 'Parking',
  pets: 'Pets welcome',
  washer: 'Washer',
  jetty: 'Own jetty',
  desk: 'Desk',
  cot: 'Cot',
};

const PLACES = [
  { town: 'Reine', region: 'Lofoten', country: 'Norway', near: 'the fjord' },
  { town: 'Portree', region: 'Isle of Skye', country: 'Scotland', near: 'the harbour' },
  { town: 'Furnas', region: 'Azores', country: 'Portugal', near: 'the lake' },
  { town: 'Hallstatt', region: 'Salzkammergut', country: 'Austria', near: 'the lake' },
  { town: 'Visby', region: 'Gotland', country: 'Sweden', near: 'the beach' },
  { town: 'Dingle', region: 'County Kerry', country: 'Ireland', near: 'the bay' },
  { town: 'Bled', region: 'Upper Carniola', country: 'Slovenia', near: 'the lake' },
  { town: 'Hvar', region: 'Dalmatia', country: 'Croatia', near: 'the beach' },
  { town: 'Savonlinna', region: 'Lakeland', country: 'Finland', near: 'the lake' },
  { town: 'Ribe', region: 'South Jutland', country: 'Denmark', near: 'the marsh' },
  { town: 'Varenna', region: 'Lake Como', country: 'Italy', near: 'the water' },
  { town: 'Kotor', region: 'Bay of Kotor', country: 'Montenegro', near: 'the bay' },
];

const MOODS = ['Quiet', 'Little', 'Old', 'Bright', 'Windward', 'Red', 'White', 'Hidden', 'Blue', 'Upper', 'Far', 'Mossy'];
const THINGS = ['Heron', 'Juniper', 'Birch', 'Tern', 'Anchor', 'Clover', 'Otter', 'Pebble', 'Lantern', 'Rowan', 'Gull', 'Thistle'];
const HOSTS = ['Ingrid', 'Callum', 'Marta', 'Jonas', 'Aoife', 'Luka', 'Elena', 'Oskar', 'Niamh', 'Tomas', 'Sofia', 'Eino'];
const PHRASES = [
  'Breakfast table in the morning sun, boots by the door, nothing to hear but water.',
  'Rebuilt with local timber, warm floors and one very good reading chair.',
  'The path behind the house leads to the shore in a few minutes.',
  'Sleeps a family without anyone on a sofa; the kitchen has real knives.',
  'Big windows to the west. On clear evenings you will not cook on time.',
  'A stove, a stack of dry wood, and a shelf of other people’s paperbacks.',
];

export const catalogue = Array.from({ length: SIZE }, (_, index) => home(index + 1));

function home(id) {
  const random = seeded(id * 7919);
  const place = random.pick(PLACES);
  const kind = random.pick(KINDS);
  const bedrooms = random.whole(1, 4);
  const reviews = random.chance(0.08) ? 0 : random.whole(3, 420);
  const rating = reviews === 0 ? null : Math.round(random.between(4.2, 5) * 100) / 100;
  const nightly = Math.round((38 + bedrooms * 24 + random.between(0, 150)) / 2) * 2;
  const reduced = random.chance(0.18);
  const amenities = pickSome(random, Object.keys(AMENITIES), random.whole(4, 7));
  return {
    id,
    name: `${random.pick(MOODS)} ${random.pick(THINGS)} ${kind}`,
    kind,
    place,
    distance: random.whole(2, 90) * 10,
    guests: bedrooms * 2 + (random.chance(0.3) ? 1 : 0),
    bedrooms,
    beds: bedrooms + random.whole(0, 2),
    baths: Math.max(1, bedrooms - random.whole(0, 2)),
    rating,
    reviews,
    nightly,
    before: reduced ? Math.round(nightly * 1.2) : null,
    total: nightly * NIGHTS,
    free: stay(random),
    amenities,
    tags: tags({ rating, reviews, random }),
    host: random.pick(HOSTS),
    about: random.pick(PHRASES),
  };
}

/** The free days of a home around the requested days. */
function stay(random) {
  const from = Date.UTC(2027, 5, random.whole(6, 14));
  return { from, to: from + random.whole(NIGHTS, 21) * DAY };
}

function tags({ rating, reviews, random }) {
  const found = [];
  if (reviews === 0) found.push('New');
  if (rating >= 4.85 && reviews > 40) found.push('Guest favourite');
  if (random.chance(0.55)) found.push('Free cancellation');
  if (random.chance(0.2)) found.push('By train');
  return found;
}

/** `count` of the values, in the order of the list, so that cards look alike. */
function pickSome(random, values, count) {
  const chosen = new Set();
  while (chosen.size < count) chosen.add(random.pick(values));
  return values.filter((value) => chosen.has(value));
}
