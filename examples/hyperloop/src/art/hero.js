// The picture at the top of the list: a fjord at dusk, empty on the left, where the text is.
import { house } from './houses.js';
import { LIGHTS, paintBy } from './light.js';
import { seeded } from './random.js';
import { circle, fir, glitter, gradient, mountains, path, rect, ripples, sailboat } from './shapes.js';

export function hero({ key, w, h }) {
  const random = seeded(20_260);
  const { sky, sun } = LIGHTS.dusk;
  const paint = paintBy('dusk');
  const sea = h * 0.63;
  const x = w * 0.735;
  const y = h * 0.4;
  const rock = (depth) => ({ face: paint('#6a83a8', depth), shade: paint('#42587f', depth * 0.8) });
  const band = (from, fill) => rect(0, sea + (h - sea) * from, w, (h - sea) * (1 - from) + 1, fill);
  const range = (from, to, height, count, depth, snow) => mountains(
    random,
    { from: w * from, to: w * to, base: sea, height: h * height, count, ...rock(depth), snow: snow && paint('#ffffff', 0.25) },
  );
  return (
    gradient(key, [[0, '#2a2150'], [0.34, sky[0]], [0.68, sky[1]], [1, sky[2]]]) +
    rect(0, 0, w, sea + 2, `url(#${key})`) +
    stars(random, w, h) +
    [3.6, 2.5, 1.7].map((share, index) => circle(x, y, h * 0.085 * share, sun, ` opacity="${[0.07, 0.12, 0.2][index]}"`)).join('') +
    circle(x, y, h * 0.085, sun) +
    streak(w * 0.56, h * 0.2, 80) + streak(w * 0.9, h * 0.13, 110) + streak(w * 0.8, h * 0.27, 60) +
    range(-0.04, 0.62, 0.15, 9, 0.62) + range(0.6, 1.06, 0.42, 4, 0.45, true) + range(0.78, 1.1, 0.5, 2, 0.28, true) +
    range(-0.06, 0.2, 0.22, 2, 0.36) + range(0.34, 0.84, 0.15, 6, 0.24) + range(0.86, 1.12, 0.26, 2, 0.12) +
    [[0, 0.55], [0.14, 0.42], [0.34, 0.28], [0.62, 0.16]].map(([from, sheen]) => band(from, paint.water('#2d5a86', sheen))).join('') +
    ripples(random, { width: w, from: sea, to: h, fill: '#ffb9a6', count: 46 }) +
    glitter(random, { x, from: sea, to: h * 0.86, fill: sun }) + glitter(random, { x: x + 6, from: sea + 6, to: h * 0.8, fill: sun }) +
    sailboat(w * 0.56, h * 0.74, h * 0.085, { hull: '#2b1d45', sail: '#ffe6cf', jib: '#f3a78f' }) +
    sailboat(w * 0.46, h * 0.675, h * 0.038, { hull: '#3b2652', sail: '#f7c9b4', jib: '#e0907f' }) +
    path(
      '#2a1d44',
      [
        'M', w, h, 'V', h * 0.7, 'C', w * 0.95, h * 0.7, w * 0.92, h * 0.77, w * 0.86, h * 0.78, 'S', w * 0.76, h * 0.82, w * 0.7, h * 0.86,
        'S', w * 0.6, h * 0.95, w * 0.5, h, 'Z',
      ],
    ) +
    house({ kind: 'boathouse', wall: '#e0402c', x: w * 0.742, y: h * 0.835, scale: 1.5, paint, lit: true }) +
    house({ kind: 'boathouse', wall: '#d8432f', x: w * 0.835, y: h * 0.8, scale: 1.35, paint, lit: true }) +
    house({ kind: 'cabin', wall: '#e3a13c', x: w * 0.925, y: h * 0.745, scale: 1.25, paint, lit: true }) +
    [0.905, 0.918, 0.815, 0.985].map((at, index) => fir(w * at, h * [0.765, 0.775, 0.81, 0.74][index], [70, 52, 60, 80][index], '#2f2a55', '#241f45')).join('') +
    path(
      '#1c1433',
      [
        'M', 0, h, 'V', h * 0.9, 'C', w * 0.1, h * 0.84, w * 0.2, h * 0.92, w * 0.34, h * 0.93, 'S', w * 0.6, h * 0.97, w * 0.74, h * 0.92,
        'S', w * 0.92, h * 0.86, w, h * 0.85, 'V', h, 'Z',
      ],
    ) +
    [0.03, 0.052, 0.08].map((at, index) => fir(w * at, h * [0.9, 0.9, 0.895][index], [100, 74, 88][index], '#251a40', '#1c1433')).join('')
  );
}

/** A thin cloud, lit from below. */
function streak(x, y, long) {
  return rect(x, y, long * 2.2, 7, '#ff9d8a', ' rx="3.5" opacity=".45"') +
    rect(x + long * 0.6, y + 13, long * 1.3, 5, '#ff9d8a', ' rx="2.5" opacity=".35"');
}

function stars(random, w, h) {
  const one = () => circle(random.between(0, w), h * random.between(0, 0.3), random.between(0.6, 1.7), '#ffe9d6', ` opacity="${random.between(0.25, 0.9).toFixed(2)}"`);
  return Array.from({ length: 70 }, one).join('');
}
