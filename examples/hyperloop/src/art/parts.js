// Parts that several settings share: water with light, a village, a church, and a function that spreads things over a
// width.
import { circle, glitter, path, rect, ripples } from './shapes.js';

export function water({ random, w, h, sea, paint, sun, x, top, low }) {
  const band = (from, fill) => rect(0, sea + (h - sea) * from, w, (h - sea) * (1 - from), fill);
  const bands = [
    band(0, paint.water(top, 0.4)), band(0.16, paint.water(low, 0.5)), band(0.38, paint.water(low, 0.32)),
    band(0.66, paint.water(low, 0.16)),
  ];
  return bands.join('') + ripples(random, { width: w, from: sea, to: h * 0.85, fill: paint('#ffffff', 0.3), count: many(w, 30) }) +
    glitter(random, { x, from: sea, to: h * 0.8, fill: sun });
}

export function village({ random, from, to, foot, h, paint }) {
  let out = '';
  for (let left = from; left < to; left += h * random.between(0.035, 0.06)) {
    const [wide, high] = [h * random.between(0.05, 0.075), h * random.between(0.03, 0.06)];
    const base = foot - h * random.between(0, 0.05);
    out += rect(left, base - high, wide, foot - base + high + 1, paint(random.pick(['#f6ead2', '#efd3b0', '#e8b990', '#f3f0e6']), 0.1));
    out += path(
      paint(random.pick(['#b5482f', '#c9603d', '#8d4a3a']), 0.08),
      ['M', left - 2, base - high, 'L', left + wide / 2, base - high - wide * 0.5, 'L', left + wide + 2, base - high, 'Z'],
    );
    out += rect(left + wide * 0.4, base - high * 0.7, wide * 0.16, high * 0.3, paint('#4a4350', 0.1));
  }
  return out;
}

export function church(x, foot, height, paint) {
  const wide = height * 0.2;
  return (
    rect(x, foot - height * 0.4, height * 0.55, height * 0.4, paint('#f7f0e0')) +
    path(
      paint('#7b3f36'),
      [
        'M', x, foot - height * 0.4, 'L', x + height * 0.1, foot - height * 0.58, 'H', x + height * 0.52, 'L', x + height * 0.6,
        foot - height * 0.4, 'Z',
      ],
    ) +
    rect(x - wide, foot - height * 0.68, wide * 1.15, height * 0.68, paint('#fffaf0')) +
    rect(x - wide * 0.3, foot - height * 0.68, wide * 0.45, height * 0.68, paint('#d9cfbd')) +
    path(
      paint('#4f6b63'),
      [
        'M', x - wide * 1.15, foot - height * 0.67, 'L', x - wide * 0.43, foot - height * 1.15, 'L', x + wide * 0.3, foot - height * 0.67,
        'Z',
      ],
    ) +
    circle(x - wide * 0.5, foot - height * 0.55, wide * 0.24, paint('#4f6b63'))
  );
}

/** About one thing every `step`, across the whole width. */
export function spread(w, step, draw) {
  const count = Math.max(1, Math.round(w / step));
  return Array.from({ length: count }, (_, index) => draw(((index + 0.5) * w) / count)).join('');
}

export function many(w, step) {
  return Math.max(2, Math.round(w / step));
}
