// Reviews of a stay by guests, generated from the number of the stay.
import { seeded } from './random.js';

const GUESTS = ['Hanna', 'Piet', 'Amina', 'Louise', 'Kenji', 'Ruth', 'Mateo', 'Freya', 'Anton', 'Clara', 'Seán', 'Yara', 'Ola', 'Bea', 'Viktor'];
const FROM = ['Utrecht', 'Leeds', 'Lyon', 'Bergen', 'Graz', 'Porto', 'Kyoto', 'Malmö', 'Ghent', 'Tartu', 'Cork', 'Turin'];
const ASPECTS = ['Clean', 'As described', 'Arrival', 'Host', 'Place', 'Value'];
const PRAISE = [
  'We came for two nights and moved our ferry to stay a third. {host} did not seem surprised.',
  'The pictures are honest, which is rare: it is exactly this quiet and exactly this close to {town}.',
  'Everything you need and nothing you would have to be careful with. The children asked to live here.',
  'Rained for four days and we did not mind. Good lamps, good chairs, a shelf of books in five languages.',
  '{host} left bread and a hand-drawn map. The map was right about all of it.',
  'Woke up before the alarm each day because of the light. I have never written that sentence before.',
  'Warm, dry, well thought out. You notice that somebody lives near and cares.',
  'We have stayed in {town} five times, and this is where we will stay the sixth.',
];
const GRUMBLES = [
  'The last stretch of road is steeper than it sounds. Lovely once you are up.',
  'Mind your head on the stairs. {host} warned us, and we still did not.',
  'The phone has one bar by the window. After a day this became the point.',
];

export function reviewsOf({ id, town, host, rating, reviews: count }) {
  if (rating === null) return { rating, count: 0, stars: [], aspects: [], reviews: [] };
  const random = seeded(id * 15_485_863);
  const words = (text) => text.replace('{host}', host.name).replace('{town}', town);
  const pool = [...PRAISE];
  const reviews = Array.from({ length: Math.min(count, 5) }, (_, index) => {
    const grumbles = index > 0 && random.chance(0.25);
    const text = grumbles ? random.pick(GRUMBLES) : pool.splice(random.whole(0, pool.length - 1), 1)[0];
    const month = new Date(Date.UTC(2026, 9 - index * 2 - random.whole(0, 1), 1));
    return { id: index + 1, author: random.pick(GUESTS), from: random.pick(FROM), month: month.toISOString().slice(0, 7), stars: grumbles ? 4 : 5, text: words(text) };
  });
  return {
    rating,
    count,
    stars: share(rating, count),
    aspects: ASPECTS.map((name) => ({ name, rating: Math.min(5, Math.round((rating + random.between(-0.25, 0.2)) * 10) / 10) })),
    reviews,
  };
}

/** How many gave five stars, four, ... so that the average is about this rating. */
function share(rating, count) {
  const five = Math.round(count * Math.min(1, Math.max(0, rating - 4)));
  const four = Math.round((count - five) * 0.85);
  const three = Math.round((count - five - four) * 0.7);
  return [five, four, three, count - five - four - three, 0];
}
