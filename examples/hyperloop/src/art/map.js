// A drawn map around a stay: contour lines, water, a road, a pin. It shows no real place.
import { seeded } from './random.js';
import { circle, path, round } from './shapes.js';

export function map({ id, w, h }) {
  const random = seeded(id * 6007);
  const [x, y] = [w * random.between(0.25, 0.4), h * random.between(0.25, 0.4)];
  const shore = h * random.between(0.55, 0.68);
  const pin = { x: w * random.between(0.52, 0.62), y: shore - h * 0.14 };
  const heights = Array.from({ length: 7 }, (_, index) => ring(random, x, y, h * (0.08 + index * 0.085), index)).reverse();
  const coast = [
    'M', 0, shore + h * 0.1, 'C', w * 0.2, shore - h * 0.1, w * 0.35, shore + h * 0.16, w * 0.55, shore, 'S', w * 0.85, shore + h * 0.14, w,
    shore - h * 0.08,
  ];
  const wave = path('none', coast, ' stroke="#ffffff" stroke-width="1.5" opacity=".55"');
  return (
    `<rect width="${w}" height="${h}" fill="#e8ecd6"/>` +
    heights.join('') +
    path('#a9d3dc', [...coast, 'V', h, 'H', 0, 'Z']) +
    [0.06, 0.13, 0.21].map((down) => `<g transform="translate(0 ${round(h * down)})">${wave}</g>`).join('') +
    path(
      'none',
      ['M', -10, h * 0.12, 'C', w * 0.3, h * 0.5, w * 0.45, shore - h * 0.2, pin.x, pin.y, 'S', w * 0.8, h * 0.2, w + 10, h * 0.24],
      ' stroke="#ffffff" stroke-width="9"',
    ) +
    path(
      'none',
      ['M', -10, h * 0.12, 'C', w * 0.3, h * 0.5, w * 0.45, shore - h * 0.2, pin.x, pin.y, 'S', w * 0.8, h * 0.2, w + 10, h * 0.24],
      ' stroke="#f0a25a" stroke-width="5"',
    ) +
    path(
      'none',
      ['M', pin.x, pin.y, 'Q', w * 0.42, h * 0.3, x, y],
      ' stroke="#7a5a40" stroke-width="2" stroke-dasharray="2 7" stroke-linecap="round"',
    ) +
    `<ellipse cx="${round(pin.x)}" cy="${round(pin.y + 3)}" rx="13" ry="5" opacity=".22"/>` +
    path('#d8432f', ['M', pin.x, pin.y, 'c', -8, -18, -22, -27, -22, -43, 'a', 22, 22, '0 1 1', 44, 0, 'c', 0, 16, -14, 25, -22, 43, 'z']) +
    circle(pin.x, pin.y - 43, 9, '#fffaf0')
  );
}

/** A line of equal height: round, but not quite. */
function ring(random, x, y, radius, index) {
  const turns = [0, 1, 2, 3].map((turn) => radius * (1 + random.between(-0.14, 0.22)) * (turn % 2 === 0 ? 1.5 : 1));
  const [right, down, left, up] = turns;
  const k = 0.55;
  const d = [
    'M', x + right, y, 'C', x + right, y + down * k, x + right * k, y + down, x, y + down, 'S', x - left, y + down * k, x - left, y, 'S',
    x - left * k, y - up, x, y - up, 'S', x + right, y - up * k, x + right, y, 'Z',
  ];
  const fills = ['#f6f1e4', '#dfe0bf', '#d3dbb2', '#cbd9ad', '#d3dfb8', '#dbe4c4', '#e2e8cd'];
  return path(fills[index], d, ' stroke="#b9b184" stroke-width="1"');
}
