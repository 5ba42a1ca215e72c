// Texts about the seven towns of the listings and the five kinds of houses.

export const PLACES = {
  Reine: {
    region: 'Lofoten',
    country: 'Norway',
    setting: 'fjord',
    names: ['Rorbu', 'Skrei', 'Havet', 'Olstind', 'Nordlys'],
    lines: [
      'The mountains stand straight up out of the water here, and the light moves across them all day.',
      'In winter the cod racks fill up and the sky does what people fly north for; in summer it never gets dark.',
      'The bakery opens at eight, the ferry to Vindstad leaves at eleven, and the trail up Reinebringen begins behind the tunnel.',
    ],
  },
  Portree: {
    region: 'Isle of Skye',
    country: 'Scotland',
    setting: 'harbour',
    names: ['Heron', 'Sgeir', 'Bracken', 'Storr', 'Lamp'],
    lines: [
      'The harbour is a row of painted fronts, a slipway, and boats that come back with langoustine.',
      'The Old Man of Storr is twenty minutes by bus; the weather changes four times on the way and is part of the trip.',
      'Somebody will be playing the fiddle by nine, not far from your door and not for tourists.',
    ],
  },
  Furnas: {
    region: 'Azores',
    country: 'Portugal',
    setting: 'crater',
    names: ['Hortênsia', 'Caldeira', 'Camélia', 'Fumarola', 'Cedro'],
    lines: [
      'A village inside a volcano: hot springs in the park, steam between the houses, hydrangeas along every wall.',
      'Lunch is cooked in the ground by the lake and dug up at noon. The warm pools are best after dark, in the rain.',
      'Everything is green, in more ways than you had words for.',
    ],
  },
  Hallstatt: {
    region: 'Salzkammergut',
    country: 'Austria',
    setting: 'lake',
    names: ['Dachstein', 'Salzmann', 'Seeblick', 'Lärche', 'Echern'],
    lines: [
      'By day the coaches come; at six they leave, and the lake goes quiet and flat and is yours.',
      'The salt mine is older than the alphabet. The funicular saves you the eight hundred steps, one way at least.',
      'Swim before breakfast: the water is clear to the bottom and cold enough to count as an achievement.',
    ],
  },
  Visby: {
    region: 'Gotland',
    country: 'Sweden',
    setting: 'wall',
    names: ['Rosen', 'Kruttorn', 'Kalk', 'Almedal', 'Hansa'],
    lines: [
      'A medieval wall with roses growing over it, ruins used as gardens, and the sea at the end of each lane.',
      'Hire a bicycle, ride north to the sea stacks, and be back for saffron pancake.',
      'The evenings are long and pink, and there is always a step in the sun to sit on.',
    ],
  },
  Dingle: {
    region: 'County Kerry',
    country: 'Ireland',
    setting: 'fields',
    names: ['Fuchsia', 'Currach', 'Slea Head', 'Fiddler', 'Ogham'],
    lines: [
      'Stone walls, sheep, and the Atlantic at the end of every field.',
      'The Slea Head road is an hour if you do not stop, and nobody has ever not stopped.',
      'Music most nights, in a pub that is also a hardware shop.',
    ],
  },
  Bled: {
    region: 'Upper Carniola',
    country: 'Slovenia',
    setting: 'island',
    names: ['Labod', 'Otok', 'Pletna', 'Lipa', 'Vintgar'],
    lines: [
      'An island with a church on it, a castle on a rock, and the Alps behind, arranged as if for you.',
      'Walk round the lake in an hour and a half; the cream cake at the halfway point is not optional.',
      'The gorge is best at opening time, with the mist still in it.',
    ],
  },
};

export const KINDS = {
  cabin: {
    name: 'Cabin',
    line: 'Timber walls, a stove that heats the whole place in twenty minutes, and boots by the door.',
    amenities: ['stove', 'kitchen', 'parking', 'sauna', 'wood', 'trail', 'pets'],
  },
  cottage: {
    name: 'Cottage',
    line: 'Low doors, thick walls, a garden table, and a kitchen with real knives.',
    amenities: ['kitchen', 'garden', 'wifi', 'washer', 'pets', 'parking', 'cot'],
  },
  loft: {
    name: 'Loft',
    line: 'Up under the roof: one big room, one big window, and a very good reading chair.',
    amenities: ['wifi', 'desk', 'kitchen', 'washer', 'view', 'records', 'train'],
  },
  boathouse: {
    name: 'Boathouse',
    line: 'Built over the water. You hear it under the floor, and can be in it before the coffee is ready.',
    amenities: ['jetty', 'boat', 'kitchen', 'view', 'stove', 'sauna', 'wifi'],
  },
  farmhouse: {
    name: 'Farmhouse',
    line: 'Room for everybody at one long table; eggs from the yard, and nobody on a sofa bed.',
    amenities: ['garden', 'kitchen', 'parking', 'pets', 'washer', 'wood', 'cot'],
  },
};
