// The listings: made once, the same in every process.

const TOWNS = [
  ['Reine', 'NO'],
  ['Portree', 'GB'],
  ['Furnas', 'PT'],
  ['Hallstatt', 'AT'],
  ['Visby', 'SE'],
  ['Dingle', 'IE'],
  ['Bled', 'SI'],
];
const KINDS = ['cabin', 'cottage', 'loft', 'boathouse', 'farmhouse'];

export const listings = Array.from({ length: 140 }, (_, index) => {
  const [town, country] = TOWNS[index % TOWNS.length];
  return { id: index + 1, kind: KINDS[index % KINDS.length], town, country, guests: 2 + (index % 6), nightly: 60 + ((index * 37) % 180) };
});
