// The seven settings in the style of travel posters: everything between the sky and the foreground. Each takes { key,
// random, w, h, paint, sun, x } and returns SVG as text. `key` is for ids, `paint` changes colours by the light, `sun` is
// the colour of the sun, and `x` its position.
import { church, many, spread, village, water } from './parts.js';
import { circle, ellipse, fir, hills, mountains, path, rect, roundTree, rowboat, sailboat } from './shapes.js';

export const PLACES = { fjord, harbour, crater, lake, wall, fields, island };

function fjord({ random, w, h, paint, sun, x }) {
  const sea = h * 0.6;
  return (
    mountains(
      random,
      { to: w, base: sea, height: h * 0.4, count: many(w, 110), face: paint('#6f8ea0', 0.45), shade: paint('#4f6c80', 0.4), snow: paint('#ffffff', 0.1) },
    ) +
    mountains(
      random,
      { to: w, base: sea, height: h * 0.24, count: many(w, 90), face: paint('#44667a', 0.12), shade: paint('#2f4c60', 0.08) },
    ) +
    water({ random, w, h, sea, paint, sun, x, top: '#7fb4bf', low: '#2d6377' }) +
    path(
      paint('#2b3c42'),
      ['M', 0, h, 'V', h * 0.83, 'Q', w * 0.14, h * 0.78, w * 0.32, h * 0.85, 'T', w * 0.68, h * 0.9, 'T', w, h * 0.84, 'V', h, 'Z'],
    )
  );
}

function harbour({ random, w, h, paint, sun, x }) {
  const quay = h * 0.6;
  const colours = ['#e4674c', '#f2c14e', '#f6efe0', '#6ea8b5', '#efa7a0', '#8fae7c'];
  let fronts = '';
  const wide = Math.max(22, h * 0.075);
  for (let left = -8; left < w; ) {
    const width = wide * random.between(0.85, 1.2);
    const high = h * random.between(0.1, 0.15);
    const pane = paint('#31495a');
    const wall = paint(random.pick(colours), 0.06);
    fronts += path(
      wall,
      [
        'M', left, quay, 'V', quay - high, 'L', left + width / 2, quay - high - width * 0.42, 'L', left + width, quay - high, 'V', quay,
        'Z',
      ],
    );
    fronts += path(
      paint('#4a4f5c', 0.1),
      [
        'M', left - 1, quay - high + 1, 'L', left + width / 2, quay - high - width * 0.5, 'L', left + width + 1, quay - high + 1, 'L',
        left + width / 2, quay - high - width * 0.3, 'Z',
      ],
    );
    const window = (across, down) => [
      'M', left + width * across, quay - high * down, 'h', width * 0.17, 'v', high * 0.2, 'h', -width * 0.17, 'z',
    ];
    fronts += path(pane, [...window(0.22, 0.82), ...window(0.6, 0.82), ...window(0.22, 0.42), ...window(0.6, 0.42)]);
    left += width;
  }
  return (
    hills(random, { width: w, base: quay - h * 0.08, height: h * 0.22, count: many(w, 130), fill: paint('#7f9a8a', 0.5), foot: quay }) +
    hills(random, { width: w, base: quay - h * 0.06, height: h * 0.14, count: many(w, 90), fill: paint('#4e7a5e', 0.2), foot: quay }) +
    fronts +
    rect(0, quay, w, h * 0.03, paint('#8b8378')) +
    water({ random, w, h, sea: quay + h * 0.03, paint, sun, x, top: '#6fb0b8', low: '#235a6d' }) +
    spread(
      w,
      170,
      (at) => sailboat(
        at + random.between(-30, 30),
        h * random.between(0.7, 0.76),
        h * 0.075,
        { hull: paint('#c23b2a'), sail: paint('#fffaf0'), jib: paint('#f2d6b0') },
      ),
    ) +
    path(paint('#3d4a45'), ['M', 0, h, 'V', h * 0.86, 'Q', w * 0.3, h * 0.82, w * 0.55, h * 0.89, 'T', w, h * 0.87, 'V', h, 'Z'])
  );
}

function crater({ random, w, h, paint, sun, x }) {
  const shore = h * 0.56;
  const flowers = ['#5b7fd0', '#8f8be0', '#c58bd6', '#e7a3c4', '#7fb0e6'];
  const blooms = spread(w, 17, (at) => {
    const radius = h * random.between(0.022, 0.04);
    const y = h * random.between(0.9, 0.99);
    const colour = random.pick(flowers);
    return circle(at, y, radius, paint(colour)) +
      circle(at - radius * 0.3, y - radius * 0.3, radius * 0.45, paint('#ffffff'), ' opacity=".3"');
  });
  const puff = (at, nth) => circle(
    at,
    shore - h * (0.03 + nth * 0.055),
    h * (0.014 + nth * 0.012),
    paint('#ffffff'),
    ` opacity="${[0.75, 0.57, 0.39][nth]}"`,
  );
  const steam = spread(w, 150, (at) => [0, 1, 2].map((nth) => puff(at + nth * 5, nth)).join(''));
  return (
    hills(random, { width: w, base: shore - h * 0.12, height: h * 0.2, count: many(w, 150), fill: paint('#7fae8b', 0.5), foot: shore }) +
    hills(random, { width: w, base: shore - h * 0.05, height: h * 0.17, count: many(w, 110), fill: paint('#3f8a5e', 0.2), foot: shore }) +
    spread(
      w,
      24,
      (at) => fir(at + random.between(-8, 8), shore + 2, h * random.between(0.05, 0.1), paint('#2c6a4b', 0.12), paint('#215540', 0.1)),
    ) +
    water({ random, w, h, sea: shore, paint, sun, x, top: '#8fd0b8', low: '#2f8578' }) +
    steam +
    path(paint('#2f6b45'), ['M', 0, h, 'V', h * 0.82, 'Q', w * 0.25, h * 0.76, w * 0.5, h * 0.84, 'T', w, h * 0.82, 'V', h, 'Z']) +
    blooms
  );
}

function lake({ random, w, h, paint, sun, x }) {
  const shore = h * 0.6;
  const spire = w * random.between(0.56, 0.66);
  return (
    mountains(
      random,
      { to: w, base: shore, height: h * 0.44, count: many(w, 120), face: paint('#8a97b5', 0.45), shade: paint('#67769a', 0.4), snow: paint('#ffffff', 0.08) },
    ) +
    mountains(
      random,
      { from: -w * 0.2, to: w * 0.36, base: shore, height: h * 0.36, count: many(w * 0.56, 90), face: paint('#3f6f61', 0.1), shade: paint('#2d5650', 0.06) },
    ) +
    mountains(
      random,
      { from: w * 0.74, to: w * 1.2, base: shore, height: h * 0.34, count: many(w * 0.46, 90), face: paint('#47786a', 0.14), shade: paint('#336057', 0.1) },
    ) +
    village({ random, from: spire - h * 0.2, to: spire + h * 0.22, foot: shore, h, paint }) +
    church(spire, shore, h * 0.2, paint) +
    water({ random, w, h, sea: shore, paint, sun, x, top: '#86b7c4', low: '#2a5a74' }) +
    rowboat(w * 0.42, h * 0.72, h * 0.035, paint('#7a4a2b'), paint('#c9955f')) +
    path(paint('#34513f'), ['M', 0, h, 'V', h * 0.84, 'Q', w * 0.2, h * 0.8, w * 0.45, h * 0.87, 'T', w, h * 0.83, 'V', h, 'Z'])
  );
}

function wall({ random, w, h, paint, sun, x }) {
  const foot = h * 0.78;
  const stone = paint('#d8c7a5', 0.05);
  const shade = paint('#a8977a', 0.05);
  const teeth = (left, right, top, wide) => {
    let out = '';
    for (let at = left; at < right; at += wide * 2) out += rect(at, top - wide, Math.min(wide, right - at), wide + 0.5, stone);
    return out;
  };
  const tower = (at) => {
    const [wide, high] = [h * 0.1, h * random.between(0.28, 0.34)];
    return (
      rect(at, foot - high, wide, high, stone) + rect(at + wide * 0.62, foot - high, wide * 0.38, high, shade) +
      teeth(at, at + wide, foot - high, wide / 7) +
      path(
        paint('#b5482f'),
        [
          'M', at - 3, foot - high - wide * 0.1, 'L', at + wide / 2, foot - high - wide * 0.9, 'L', at + wide + 3, foot - high - wide * 0.1,
          'Z',
        ],
      ) +
      rect(at + wide * 0.28, foot - high * 0.7, wide * 0.12, high * 0.14, paint('#3a3440'))
    );
  };
  const roses = spread(
    w,
    13,
    (at) => circle(
      at,
      h * random.between(0.84, 0.97),
      h * random.between(0.011, 0.022),
      paint(random.pick(['#d8375a', '#f06a86', '#f7b8c2', '#fff1ec'])),
    ),
  );
  return (
    water({ random, w, h, sea: h * 0.52, paint, sun, x, top: '#8cc4cf', low: '#3a7f95' }) +
    sailboat(w * 0.2, h * 0.575, h * 0.05, { hull: paint('#33475c'), sail: paint('#fffaf0'), jib: paint('#f3dcc0') }) +
    village({ random, from: -10, to: w, foot: h * 0.72, h, paint }) +
    rect(0, h * 0.715, w, foot - h * 0.715 + 1, stone) + rect(0, h * 0.745, w, h * 0.008, shade) + teeth(0, w, h * 0.715, h * 0.018) +
    spread(w, 230, (at) => tower(at - h * 0.05)) +
    path(paint('#4d7a45'), ['M', 0, h, 'V', foot, 'H', w, 'V', h, 'Z']) +
    path(paint('#3c6639'), ['M', 0, h, 'V', h * 0.86, 'Q', w * 0.3, h * 0.81, w * 0.6, h * 0.87, 'T', w, h * 0.85, 'V', h, 'Z']) +
    roses
  );
}

function fields({ key, random, w, h, paint, sun, x }) {
  const sea = h * 0.44;
  const greens = ['#8fc15b', '#5fa24d', '#b4cf62', '#3f8a4e', '#d8cf6a', '#74b25f'];
  const patches = (base, height, depth, foot) => {
    const id = `${key}-${Math.round(base)}`;
    const clip = hills(random, { width: w, base, height, count: many(w, 160), fill: paint(random.pick(greens), depth), foot });
    const strips = spread(
      w,
      62,
      (at) => path(
        paint(random.pick(greens), depth),
        ['M', at - 30, foot, 'L', at - 6, base - height, 'H', at + 28, 'L', at + 42, foot, 'Z'],
        ' opacity=".72"',
      ),
    );
    const shape = /d="([^"]*)"/.exec(clip)[1];
    return `${clip}<clipPath id="${id}"><path d="${shape}"/></clipPath><g clip-path="url(#${id})">${strips}</g>`;
  };
  const sheep = spread(w, 60, (at) => {
    const [y, size] = [h * random.between(0.75, 0.82), h * 0.013];
    return ellipse(at, y, size * 1.5, size, paint('#fffaf2')) +
      circle(at + size * 1.5, y - size * 0.2, size * 0.55, paint('#2e2c33'));
  });
  return (
    water({ random, w, h: h * 0.75, sea, paint, sun, x, top: '#7cc0d0', low: '#3d8ea8' }) +
    mountains(
      random,
      { from: w * 0.55, to: w * 1.1, base: sea + h * 0.03, height: h * 0.12, count: many(w * 0.55, 80), face: paint('#6c8f86', 0.4), shade: paint('#54776f', 0.36) },
    ) +
    patches(h * 0.6, h * 0.1, 0.24, h) + patches(h * 0.72, h * 0.09, 0.08, h) + sheep +
    path(paint('#3d7f43'), ['M', 0, h, 'V', h * 0.85, 'Q', w * 0.28, h * 0.8, w * 0.52, h * 0.87, 'T', w, h * 0.84, 'V', h, 'Z'])
  );
}

function island({ random, w, h, paint, sun, x }) {
  const shore = h * 0.58;
  const middle = w * random.between(0.52, 0.6);
  const [half, foot] = [h * 0.17, h * 0.67];
  const trees = Array.from(
    { length: 9 },
    (_, index) => roundTree(
      middle - half * 0.85 + (index * half * 1.7) / 8,
      foot - h * 0.012,
      h * random.between(0.06, 0.095),
      paint('#3f8456'),
      paint('#2f6b49'),
      paint('#4a3a30'),
    ),
  ).join('');
  const cliff = w * 0.9;
  return (
    mountains(
      random,
      { to: w, base: shore, height: h * 0.36, count: many(w, 100), face: paint('#8aa5bf', 0.5), shade: paint('#6a86a5', 0.45), snow: paint('#ffffff', 0.1) },
    ) +
    hills(random, { width: w, base: shore - h * 0.02, height: h * 0.13, count: many(w, 100), fill: paint('#3f7a60', 0.2), foot: shore }) +
    path(
      paint('#8c8474', 0.1),
      ['M', cliff - h * 0.13, shore, 'L', cliff - h * 0.08, shore - h * 0.2, 'L', cliff + h * 0.14, shore - h * 0.22, 'V', shore, 'Z'],
    ) +
    rect(cliff - h * 0.06, shore - h * 0.26, h * 0.2, h * 0.05, paint('#f1e6d0', 0.1)) +
    path(
      paint('#b5482f', 0.05),
      ['M', cliff - h * 0.07, shore - h * 0.26, 'l', h * 0.03, -h * 0.035, 'h', h * 0.16, 'l', h * 0.03, h * 0.035, 'Z'],
    ) +
    water({ random, w, h, sea: shore, paint, sun, x, top: '#7cc3c9', low: '#1f6f84' }) +
    church(middle, foot - h * 0.03, h * 0.17, paint) + trees +
    path(
      paint('#6f6a58'),
      [
        'M', middle - half, foot, 'Q', middle, foot - h * 0.035, middle + half, foot, 'Q', middle, foot + h * 0.022, middle - half, foot,
        'Z',
      ],
    ) +
    rowboat(w * 0.26, h * 0.75, h * 0.035, paint('#22577a'), paint('#e8d9b5')) +
    path(paint('#2f5d46'), ['M', 0, h, 'V', h * 0.85, 'Q', w * 0.26, h * 0.8, w * 0.5, h * 0.88, 'T', w, h * 0.85, 'V', h, 'Z'])
  );
}
