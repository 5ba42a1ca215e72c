// The listings with names, descriptions and reviews, and the search in them. Generated from each number, so every process
// has the same.
import { listings } from './listings.js';
import { KINDS, PLACES } from './places.js';
import { seeded } from './random.js';

const HOSTS = ['Ingrid', 'Callum', 'Marta', 'Jonas', 'Aoife', 'Luka', 'Elena', 'Oskar', 'Niamh', 'Tomaž', 'Sofia', 'Eino'];
const BAR = 20; // euros per bar of the histogram of prices
const DAY = 86_400_000;
const SHOWN = ['id', 'name', 'kind', 'town', 'region', 'country', 'setting', 'guests', 'bedrooms', 'nightly', 'rating', 'reviews', 'favourite'];

export const ORDERS = {
  best: (one, other) => score(other) - score(one),
  cheap: (one, other) => one.nightly - other.nightly,
  dear: (one, other) => other.nightly - one.nightly,
  rated: (one, other) => (other.rating ?? 0) - (one.rating ?? 0) || other.reviews - one.reviews,
};

const stays = listings.map(describe);
const byId = new Map(stays.map((stay) => [String(stay.id), stay]));

export function findStay(id) {
  return byId.get(id);
}

/** The stays that match, in order, and the numbers for the other choices of kind and price. */
export function searchStays({ kind, upto, guests, words, order, from, limit }) {
  const fits = {
    kind: (stay) => !kind || stay.kind === kind,
    price: (stay) => !upto || stay.nightly <= upto,
    rest: (stay) => stay.guests >= guests && words.every((word) => textOf(stay).includes(word)),
  };
  const rest = stays.filter(fits.rest);
  const found = rest.filter((stay) => fits.kind(stay) && fits.price(stay)).sort((one, other) => ORDERS[order](one, other) || one.id - other.id);
  return {
    total: found.length,
    from,
    stays: found.slice(from, from + limit).map((stay) => Object.fromEntries(SHOWN.map((key) => [key, stay[key]]))),
    kinds: countKinds(rest.filter(fits.price)),
    prices: countPrices(rest.filter(fits.kind)),
  };
}

export function calendarOf({ id }, today) {
  const first = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), 1);
  const random = seeded(id * 31 + 5);
  const months = [0, 1, 2].map((ahead) => {
    const start = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + ahead, 1));
    const days = new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 0)).getUTCDate();
    return { month: start.toISOString().slice(0, 7), days };
  });
  let taken = false;
  const free = months.map(({ month, days }) => {
    const open = [];
    for (let day = 1; day <= days; day += 1) {
      if (random.chance(taken ? 0.3 : 0.16)) taken = !taken; // a booking lasts several days
      const at = Date.parse(`${month}-01T00:00:00Z`) + (day - 1) * DAY;
      if (!taken && at >= today.getTime() - DAY && at >= first) open.push(day);
    }
    return { month, free: open };
  });
  return { months: free };
}

function describe(listing) {
  const { id, kind, town, guests } = listing;
  const random = seeded(id * 7919);
  const { region, country, setting, names, lines } = PLACES[town];
  const { name, line, amenities } = KINDS[kind];
  const bedrooms = Math.max(1, Math.ceil(guests / 2) - (random.chance(0.3) ? 1 : 0));
  const reviews = random.chance(0.07) ? 0 : random.whole(4, 320);
  const rating = reviews === 0 ? null : Math.round(random.between(4.35, 5) * 100) / 100;
  return {
    id,
    name: `${names[Math.floor(id / 7) % names.length]} ${name}`,
    kind,
    town,
    region,
    country,
    setting,
    guests,
    bedrooms,
    beds: Math.max(bedrooms, guests - random.whole(1, 2)),
    baths: Math.max(1, Math.floor(bedrooms / 2)),
    nightly: seasonal(listing),
    cleaning: 25 + bedrooms * 10,
    rating,
    reviews,
    favourite: rating >= 4.88 && reviews > 90,
    summary: line,
    about: lines,
    amenities: amenities.filter((_, index) => index < 3 || random.chance(0.7)),
    host: { name: random.pick(HOSTS), since: random.whole(2014, 2024), answers: random.pick(['within an hour', 'within a few hours', 'within a day']) },
  };
}

/** The price of this season: the listing's price, adjusted so that most are low and a few are high. */
function seasonal({ nightly, guests }) {
  return Math.round(52 + ((nightly - 60) ** 1.6) / 24 + guests * 4);
}

function textOf(stay) {
  return `${stay.name} ${stay.kind} ${stay.town} ${stay.region} ${stay.country} ${stay.setting}`.toLowerCase();
}

/** Many good ratings rank before two very good ones, with some random variation. */
function score({ id, rating, reviews }) {
  return (rating ?? 4) * (1 - 1 / (reviews + 2)) + ((id * 61) % 97) / 120;
}

function countKinds(fitting) {
  return Object.keys(KINDS).map((kind) => ({ kind, count: fitting.filter((stay) => stay.kind === kind).length }));
}

function countPrices(fitting) {
  const all = stays.map(({ nightly }) => nightly);
  const lowest = Math.floor(Math.min(...all) / BAR) * BAR;
  const highest = Math.ceil((Math.max(...all) + 1) / BAR) * BAR;
  const bars = Array.from({ length: (highest - lowest) / BAR }, () => 0);
  for (const { nightly } of fitting) bars[Math.floor((nightly - lowest) / BAR)] += 1;
  return { lowest, highest, bars };
}
