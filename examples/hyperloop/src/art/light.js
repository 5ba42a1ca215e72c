// The light of a picture: its sky, and how it changes every colour. Knows no shapes.

/** `air` is the colour of the distance. `height` is the height of the sun, as a share of the picture from the top. */
export const LIGHTS = {
  dawn: { sky: ['#f29c8e', '#f8c9a4', '#fde9cf'], sun: '#fff4dc', tint: '#f08f7f', strength: 0.15, lit: true, air: '#f9cfb4', height: [0.3, 0.38] },
  day: { sky: ['#2f9fc4', '#7fcbd8', '#d8f1ea'], sun: '#fff7d6', tint: '#ffffff', strength: 0.04, lit: false, air: '#cfe9ea', height: [0.13, 0.2] },
  dusk: { sky: ['#3d2b63', '#c2476a', '#f9a65a'], sun: '#ffe2a0', tint: '#4a1f56', strength: 0.4, lit: true, air: '#b0557f', height: [0.3, 0.4] },
  gold: { sky: ['#f4b13e', '#f8d27a', '#fdf0c9'], sun: '#fffbe8', tint: '#f0a12f', strength: 0.2, lit: false, air: '#f7d890', height: [0.2, 0.28] },
  mist: { sky: ['#9fc3bd', '#c6dcd4', '#edf3ea'], sun: '#ffffff', tint: '#c9ddd6', strength: 0.38, lit: true, air: '#e2ece4', height: [0.16, 0.24] },
  night: { sky: ['#0b1233', '#1d2b5c', '#3e5d8c'], sun: '#f4f1e1', tint: '#0d1740', strength: 0.62, lit: true, air: '#36537f', height: [0.13, 0.2] },
};

/** More frequent lights come more often. */
export const BY_DAY = ['day', 'dusk', 'dawn', 'gold', 'day', 'mist', 'dusk', 'dawn'];

/**
 * A function that changes colours by this light. `depth` from 0 to 1 is the distance, because air has a colour too. Its `water`
 * has the colour of the sky above, not of the horizon, because orange and blue would become brown.
 */
export function paintBy(name) {
  const { tint, strength, sky, air } = LIGHTS[name];
  const paint = (colour, depth = 0) => mix(mix(colour, tint, strength), air, depth);
  paint.water = (colour, share) => mix(mix(colour, tint, strength * 0.6), sky[1], share);
  return paint;
}

export function mix(one, other, share) {
  const [from, to] = [parts(one), parts(other)];
  return `#${from.map((value, index) => Math.round(value + (to[index] - value) * share).toString(16).padStart(2, '0')).join('')}`;
}

function parts(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}
