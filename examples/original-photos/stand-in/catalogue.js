// The stand-in's photos: every number is a photo, always the same, in the sizes that Flickr makes. Knows no HTTP.
import { createHash } from 'node:crypto';

/** Label, suffix of the file, part of the page's address, and the longest side: https://www.flickr.com/services/api/misc.urls.html */
const SIZES = [
  ['Square', '_s', 'sq', 75],
  ['Large Square', '_q', 'q', 150],
  ['Thumbnail', '_t', 't', 100],
  ['Small', '_m', 's', 240],
  ['Small 320', '_n', 'n', 320],
  ['Medium', '', 'm', 500],
  ['Medium 640', '_z', 'z', 640],
  ['Medium 800', '_c', 'c', 800],
  ['Large', '_b', 'l', 1024],
  ['Large 1600', '_h', 'h', 1600],
  ['Large 2048', '_k', 'k', 2048],
];
const SHAPES = [[4000, 3000], [3072, 4096], [5152, 3864], [1080, 1350], [6000, 4000], [1600, 1600], [4896, 2752]];

/** The look of the photo: its shape, and a number from 0 to 359 for its colours. */
export function looks(id) {
  const seed = createHash('sha256').update(id).digest();
  const [width, height] = SHAPES[seed[0] % SHAPES.length];
  return { width, height, hue: seed.readUInt16BE(1) % 360, seed };
}

/** Width and height by suffix (`_o` is the original). Undefined if the photo does not have this size. */
export function dimensions(id, suffix) {
  return listed(id).find((size) => size.suffix === suffix);
}

/** All sizes of a photo as Flickr lists them: those smaller than the original, and the original last. */
export function listed(id) {
  const { width, height } = looks(id);
  const smaller = SIZES.filter(([, , , side]) => side < Math.max(width, height)).map(([label, suffix, part, side]) => {
    const square = label.includes('Square');
    const scale = side / Math.max(width, height);
    return {
      label,
      suffix,
      part,
      width: square ? side : Math.round(width * scale),
      height: square ? side : Math.round(height * scale),
      number: label === 'Square', // the only size whose numbers Flickr writes as numbers
    };
  });
  return [...smaller, { label: 'Original', suffix: '_o', part: 'o', width, height, number: false }];
}
