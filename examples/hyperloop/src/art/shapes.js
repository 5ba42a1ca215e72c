// The shapes of the pictures: mountains, hills, trees, boats, water. Each returns SVG as text, and knows no place.

/** Tenths matter only in small shapes. In all others they would be a fifth of the page. */
export const round = (number) => (Math.abs(number) < 20 ? Math.round(number * 10) / 10 : Math.round(number));

/** `path` takes text with numbers in between, so that the code reads like the shape. */
export function path(fill, parts, more = '') {
  const d = parts.map((part) => (typeof part === 'number' ? round(part) : part)).join(' ').replace(/ ?([A-Za-z]) /g, '$1');
  return `<path fill="${fill}" d="${d}"${more}/>`;
}

/** Peaks side by side, each with a side in the shade. High ones are behind. */
export function mountains(random, { from = 0, to, base, height, count, face, shade, snow }) {
  const step = (to - from) / count;
  const peaks = Array.from({ length: count }, (_, index) => ({
    x: from + (index + random.between(0.25, 0.75)) * step,
    high: height * random.between(0.55, 1),
    half: step * random.between(0.8, 1.25),
    lean: random.between(-0.15, 0.3),
  }));
  return peaks
    .sort((one, other) => other.high - one.high)
    .map((peak) => mountain(random, peak, { base, face, shade, snow }))
    .join('');
}

function mountain(random, { x, high, half, lean }, { base, face, shade, snow }) {
  const top = base - high;
  const shoulder = random.between(0.45, 0.6);
  const left = ['L', x - half * shoulder * 0.8, top + high * shoulder, 'L', x - half, base];
  const right = ['L', x + half * shoulder * 0.85, top + high * shoulder, 'L', x + half, base];
  const body = path(face, ['M', x, top, ...left, 'H', x + half, 'L', x + half * shoulder * 0.85, top + high * shoulder, 'Z']);
  const dark = path(
    shade,
    [
      'M', x, top, ...right, 'H', x + half * lean, 'L', x + half * (lean * 0.2 + 0.1), top + high * 0.55, 'L', x - half * 0.06,
      top + high * 0.3, 'Z',
    ],
  );
  if (!snow) return body + dark;
  const [l, r] = [0.3 * 0.8, 0.3 * 0.85].map((share) => half * share);
  const y = top + high * 0.3;
  const cap = path(
    snow,
    [
      'M', x, top, 'L', x - l, y, 'L', x - l * 0.45, y - high * 0.05, 'L', x - l * 0.1, y + high * 0.07, 'L', x + r * 0.35, y - high * 0.04,
      'L', x + r, y, 'Z',
    ],
  );
  return body + dark + cap;
}

/** A soft line of hills from one side to the other, filled down to `foot`. */
export function hills(random, { width, base, height, count, fill, foot }) {
  const step = width / count;
  const tops = Array.from({ length: count + 1 }, () => base - height * random.between(0.1, 1));
  const parts = ['M', 0, foot, 'L', 0, tops[0]];
  for (let index = 1; index <= count; index += 1) {
    const middle = (index - 0.5) * step;
    parts.push('C', middle, tops[index - 1], middle, tops[index], index * step, tops[index]);
  }
  return path(fill, [...parts, 'V', foot, 'Z']);
}

export function fir(x, foot, height, fill, shade) {
  const half = height * 0.24;
  const tier = (top, bottom, wide, colour, side) => path(
    colour,
    ['M', x, foot - height * top, 'L', x + side * half * wide, foot - height * bottom, 'H', x, 'Z'],
  );
  const side = (colour, sign) => tier(1, 0.55, 0.62, colour, sign) + tier(0.8, 0.3, 0.82, colour, sign) + tier(0.6, 0.06, 1, colour, sign);
  return side(fill, -1) + side(shade, 1);
}

export function roundTree(x, foot, height, fill, shade, trunk) {
  const radius = height * 0.36;
  const y = foot - height + radius;
  return (
    `<rect x="${round(x - height * 0.03)}" y="${round(y)}" width="${round(height * 0.06)}" height="${round(height - radius)}" fill="${trunk}"/>` +
    circle(x, y, radius, fill) +
    path(
      shade,
      ['M', x, y - radius, 'A', radius, radius, '0 0 1', x, y + radius, 'A', radius * 1.6, radius * 1.6, '0 0 0', x, y - radius, 'Z'],
    )
  );
}

export function circle(x, y, radius, fill, more = '') {
  return `<circle cx="${round(x)}" cy="${round(y)}" r="${round(radius)}" fill="${fill}"${more}/>`;
}

export function ellipse(x, y, wide, high, fill, more = '') {
  return `<ellipse cx="${round(x)}" cy="${round(y)}" rx="${round(wide)}" ry="${round(high)}" fill="${fill}"${more}/>`;
}

export function rect(x, y, width, height, fill, more = '') {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"${more}/>`;
}

/** Flat strokes of light on water, closer together in the distance. */
export function ripples(random, { width, from, to, fill, count }) {
  return Array.from({ length: count }, (_, index) => {
    const share = ((index + 1) / (count + 1)) ** 1.5;
    const long = width * random.between(0.04, 0.16) * (0.5 + share);
    return rect(
      random.between(-0.05, 0.95) * width,
      from + (to - from) * share,
      long,
      1.2 + share * 1.6,
      fill,
      ` rx="1" opacity="${round(0.55 - share * 0.25)}"`,
    );
  }).join('');
}

/** The light of the sun on the water below it. */
export function glitter(random, { x, from, to, fill }) {
  return Array.from({ length: 7 }, (_, index) => {
    const long = 10 + index * random.between(4, 8);
    return rect(x - long / 2 + random.between(-5, 5), from + 3 + ((to - from) * index) / 8, long, 2, fill, ' rx="1" opacity=".75"');
  }).join('');
}

export function sailboat(x, y, size, { hull, sail, jib }) {
  return (
    path(hull, ['M', x - size * 0.5, y, 'H', x + size * 0.55, 'L', x + size * 0.35, y + size * 0.2, 'H', x - size * 0.36, 'Z']) +
    path(sail, ['M', x, y - size * 0.06, 'V', y - size * 1.15, 'L', x + size * 0.5, y - size * 0.06, 'Z']) +
    path(jib, ['M', x - size * 0.06, y - size * 0.06, 'V', y - size * 0.95, 'L', x - size * 0.42, y - size * 0.06, 'Z'])
  );
}

export function rowboat(x, y, size, hull, inside) {
  return path(hull, ['M', x - size, y, 'Q', x, y + size * 0.62, x + size, y, 'Z']) +
    path(inside, ['M', x - size, y, 'Q', x, y + size * 0.16, x + size, y, 'Q', x, y - size * 0.08, x - size, y, 'Z']);
}

export function cloud(x, y, size, fill) {
  const below = rect(x - size, y - size * 0.22, size * 2, size * 0.3, fill, ` rx="${round(size * 0.15)}"`);
  const above = rect(x - size * 0.55, y - size * 0.44, size * 1.15, size * 0.36, fill, ` rx="${round(size * 0.18)}"`);
  return `<g opacity=".8">${below}${above}</g>`;
}

/** A gradient for `url(#key)`, from top to bottom. A stop is `[position, colour]`. */
export function gradient(key, stops) {
  const list = stops.map(([at, colour]) => `<stop offset="${at}" stop-color="${colour}"/>`).join('');
  return `<defs><linearGradient id="${key}" x2="0" y2="1">${list}</linearGradient></defs>`;
}
