// The name of the site, in one place.

export const NAME = 'Farther';
export const KIND_NAMES = { cabin: 'Cabin', cottage: 'Cottage', loft: 'Loft', boathouse: 'Boathouse', farmhouse: 'Farmhouse' };
export const SETTINGS = {
  fjord: 'by a fjord',
  harbour: 'above a harbour',
  crater: 'on a crater lake',
  lake: 'below the Alps',
  wall: 'inside a city wall',
  fields: 'between fields and sea',
  island: 'across from an island',
};
export const AMENITIES = {
  stove: 'Wood stove',
  kitchen: 'Kitchen',
  parking: 'Parking at the door',
  sauna: 'Sauna',
  wood: 'Firewood',
  trail: 'Trail from the door',
  pets: 'Pets are welcome',
  garden: 'Garden',
  wifi: 'Wi-Fi',
  washer: 'Washing machine',
  cot: 'Cot',
  desk: 'Desk by the window',
  view: 'A view worth the name',
  records: 'Record player',
  train: 'Reached by train',
  jetty: 'Own jetty',
  boat: 'Rowing boat',
};
