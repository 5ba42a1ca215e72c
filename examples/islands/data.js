// The data of the islands, which a real site would get from an API. Knows no markup.

const STAYS = [
  { id: 1, name: 'Rust-red boathouse', place: 'Nusfjord', kind: 'Boathouse', price: 148, rating: 4.94, hue: 12, sun: 30 },
  { id: 2, name: 'Keeper’s lighthouse', place: 'Utsira', kind: 'Lighthouse', price: 212, rating: 4.98, hue: 205, sun: 72 },
  { id: 3, name: 'Cabin under the ridge', place: 'Hamnøy', kind: 'Cabin', price: 119, rating: 4.87, hue: 158, sun: 55 },
  { id: 4, name: 'The old cod-liver mill', place: 'Å', kind: 'Boathouse', price: 134, rating: 4.81, hue: 42, sun: 20 },
  { id: 5, name: 'Glass cabin', place: 'Senja', kind: 'Cabin', price: 186, rating: 4.96, hue: 260, sun: 64 },
  { id: 6, name: 'Harbour light', place: 'Nusfjord', kind: 'Lighthouse', price: 164, rating: 4.9, hue: 188, sun: 40 },
];

const REVIEWS = [
  { id: 1, who: 'Ingrid', from: 'Bergen', stars: 5, text: 'We woke up to otters below the window. The stove was lit before we came.' },
  { id: 2, who: 'Tomás', from: 'Porto', stars: 5, text: 'So quiet that we heard the tide turn. The bed faces the sea, as it should.' },
  { id: 3, who: 'Mei', from: 'Tainan', stars: 4, text: 'The road ends two kilometres early and the last part is by boat. Bring a torch.' },
  { id: 4, who: 'Anselm', from: 'Graz', stars: 5, text: 'Five days became nine.' },
  { id: 5, who: 'Rósa', from: 'Ísafjörður', stars: 3, text: 'Lovely house; the wind has opinions of its own and shares them at night.' },
];

export function dataFor({ broken = false, now = new Date() } = {}) {
  return {
    Search: { places: [...new Set(STAYS.map(({ place }) => place))], guests: 2 },
    Viewers: { looking: 23, past: [14, 17, 15, 19, 18, 21, 20, 24, 22, 25, 23, 23] },
    Stays: { stays: STAYS },
    'PriceCalendar.js': calendar(now),
    Reviews: { reviews: REVIEWS, broken },
  };
}

/** The month after this one. All words and positions are computed here, because a browser's locale must not change what the server has rendered. */
function calendar(now) {
  const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
  const count = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  const offset = (first.getUTCDay() + 6) % 7;
  const days = Array.from({ length: count }, (_, index) => {
    const weekend = (index + offset) % 7 >= 4 && (index + offset) % 7 <= 5;
    return { day: index + 1, price: 118 + ((index * 7) % 5) * 6 + (weekend ? 38 : 0), free: index % 11 !== 4 && index % 13 !== 9 };
  });
  return { month: first.toLocaleString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' }), offset, days };
}
