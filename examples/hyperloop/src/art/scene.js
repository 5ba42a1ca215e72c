// A picture of a stay from outside: sky, setting, and the house in front. The same stay always has the same pictures.
import { WALLS, house } from './houses.js';
import { BY_DAY, LIGHTS, paintBy } from './light.js';
import { PLACES } from './places.js';
import { seeded } from './random.js';
import { circle, cloud, fir, gradient, path, roundTree } from './shapes.js';

const CLOUDY = new Set(['day', 'gold', 'dawn']);

export function lightOf(id) {
  return BY_DAY[(id * 3 + Math.floor(id / 7)) % BY_DAY.length];
}

/** The content of an <svg viewBox="0 0 w h">. `key` separates its gradients from those of other pictures on the page. */
export function scene({ key, id, setting, kind, light, w, h, house: withHouse = true }) {
  const random = seeded(id * 104_729 + setting.length);
  const { sky, sun, lit, height } = LIGHTS[light];
  const paint = paintBy(light);
  const x = w * random.pick([0.26, 0.32, 0.68, 0.74]);
  const y = h * random.between(...height);
  const size = h * (light === 'night' ? 0.042 : 0.075);
  const onLeft = x > w / 2;
  const scale = h / 300;
  return (
    gradient(key, [[0, sky[0]], [0.5, sky[1]], [1, sky[2]]]) +
    `<rect width="${w}" height="${Math.ceil(h * 0.8)}" fill="url(#${key})"/>` +
    (light === 'night' ? stars(random, w, h) + (setting === 'fjord' ? aurora(w, h) : '') : '') +
    circle(x, y, size * 2.5, sun, ' opacity=".13"') + circle(x, y, size * 1.65, sun, ' opacity=".2"') + circle(x, y, size, sun) +
    (CLOUDY.has(light) ? clouds(random, w, h) : '') +
    PLACES[setting]({ key, random, w, h, paint, sun, x }) +
    (withHouse ? foreground({ random, kind, paint, lit, w, h, scale, onLeft }) : '')
  );
}

function foreground({ random, kind, paint, lit, w, h, scale, onLeft }) {
  const wide = 104 * scale;
  const left = onLeft ? Math.max(w * 0.08, w * 0.42 - 150 * scale) : Math.min(w * 0.96 - wide, w * 0.58 + 40 * scale);
  const foot = h * 0.9;
  const [leaf, shade] = [paint('#2f6048'), paint('#214a3a')];
  const ground = foot + 8 * scale;
  const tree = (at, high) => {
    if (kind === 'cabin' || kind === 'boathouse') return fir(at, ground, high * scale, leaf, shade);
    return roundTree(at, ground, high * 0.85 * scale, paint('#4a8a52'), paint('#37703f'), paint('#4a3a30'));
  };
  return (
    tree(left - 20 * scale, random.between(70, 92)) + tree(left - 44 * scale, random.between(48, 62)) +
    house({ wall: random.pick(WALLS[kind]), kind, x: left, y: foot, scale: scale * 1.25, paint, lit }) +
    path(paint('#1f3a35'), ['M', 0, h, 'V', h * 0.94, 'Q', w * 0.25, h * 0.89, w * 0.5, h * 0.93, 'T', w, h * 0.92, 'V', h, 'Z']) +
    tree(left + 112 * scale, random.between(56, 80))
  );
}

function clouds(random, w, h) {
  const one = (at) => cloud(w * at + random.between(-20, 20), h * random.between(0.1, 0.3), h * random.between(0.04, 0.075), '#ffffff');
  return [0.2, 0.55, 0.86].map(one).join('');
}

function stars(random, w, h) {
  return Array.from(
    { length: Math.round(w / 7) },
    () => circle(
      random.between(0, w),
      random.between(0, h * 0.5),
      random.between(0.4, 1.3),
      '#fff8e0',
      ` opacity="${random.between(0.4, 1).toFixed(2)}"`,
    ),
  ).join('');
}

function aurora(w, h) {
  const band = (top, colour, opacity) => path(
    colour,
    [
      'M', 0, h * (top + 0.14), 'C', w * 0.3, h * (top - 0.08), w * 0.5, h * (top + 0.26), w, h * top, 'V', h * (top + 0.12), 'C', w * 0.6,
      h * (top + 0.4), w * 0.3, h * (top + 0.08), 0, h * (top + 0.3), 'Z',
    ],
    ` opacity="${opacity}"`,
  );
  return band(0.05, '#5ff0b8', 0.28) + band(0.12, '#7fe3d8', 0.22) + band(0.02, '#a78bfa', 0.18);
}

