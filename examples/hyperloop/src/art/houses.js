// The five kinds of houses, drawn from the same few faces. The front's left corner is at 0,0, and a house is about 90
// wide.
import { mix } from './light.js';
import { path, rect } from './shapes.js';

/** The colours of the walls. */
export const WALLS = {
  cabin: ['#7a4a2b', '#5e4636', '#8a5a34'],
  cottage: ['#f7f1e3', '#f3d9c3', '#e9eef0'],
  loft: ['#d96f4a', '#e8b64c', '#5f93a8'],
  boathouse: ['#c23b2a', '#b9472f', '#d9a23c'],
  farmhouse: ['#f4ecd8', '#c8412f', '#e9c9a0'],
};
const ROOFS = { cabin: '#5d8a4a', cottage: '#7d6a52', loft: '#3f4a57', boathouse: '#3c4650', farmhouse: '#8f3b2c' };

/** A house of a kind at a place in a picture, with its own colour and in the light of the picture. */
export function house({ kind, x, y, scale, paint, lit, wall }) {
  const colours = {
    front: paint(wall),
    side: paint(mix(wall, '#1b2238', 0.22)),
    roof: paint(ROOFS[kind]),
    edge: paint(mix(ROOFS[kind], '#ffffff', 0.35)),
    trim: paint('#fffaf0'),
    door: paint('#3b3a4a'),
    pane: lit ? '#ffd978' : paint('#2f4d5e'),
    wood: paint('#5a4030'),
  };
  return `<g transform="translate(${Math.round(x)} ${Math.round(y)}) scale(${scale})">${DRAW[kind](colours)}</g>`;
}

const DRAW = {
  cabin: (c) => chimney(50, -40, c) + body({ c, front: 30, side: 46, wall: 19, gable: 17 }) + door(10, 0, 10, 14, c) +
    panes([40, 58], -15, 9, 8, c),
  cottage: (c) => chimney(62, -44, c) + chimney(20, -44, c) + body({ c, front: 28, side: 54, wall: 22, gable: 15 }) +
    panes([9], -16, 9, 9, c) + door(50, 0, 9, 15, c) + panes([34, 66], -16, 9, 9, c),
  loft: (c) => body({ c, front: 34, side: 30, wall: 58, gable: 20 }) + panes([5, 20], -52, 9, 11, c) + panes([5, 20], -34, 9, 11, c) +
    door(12, 0, 10, 16, c) + panes([40, 52], -50, 7, 10, c) + panes([40, 52], -31, 7, 10, c),
  boathouse: (c) => stilts(c) + body({ c, front: 32, side: 42, wall: 22, gable: 18 }) + door(8, 0, 16, 15, c) +
    panes([41, 57], -17, 9, 9, c),
  farmhouse: (c) =>
    `<g transform="translate(58 0)">${body({ c: { ...c, front: c.side }, front: 20, side: 34, wall: 20, gable: 12 })}</g>` +
    chimney(46, -50, c) + body({ c, front: 34, side: 40, wall: 28, gable: 17 }) + panes([6, 20], -24, 8, 9, c) + door(12, 0, 10, 14, c) +
    panes([41, 54], -22, 8, 10, c),
};

/** A gable to the left, a long side to the right, one roof over both. */
function body({ c, front, side, wall, gable }) {
  const ridge = front / 2;
  return (
    path(c.front, ['M', 0, 0, 'V', -wall, 'L', ridge, -wall - gable, 'L', front, -wall, 'V', 0, 'Z']) +
    rect(front, -wall, side, wall, c.side) +
    path(c.roof, ['M', ridge, -wall - gable - 2, 'H', ridge + side, 'L', front + side + 3, -wall + 2, 'H', front + 2, 'Z']) +
    path(
      'none',
      ['M', -3, -wall + 2, 'L', ridge, -wall - gable - 2, 'L', front + 3, -wall + 2],
      ` stroke="${c.edge}" stroke-width="2.6" stroke-linejoin="round"`,
    )
  );
}

function panes(lefts, top, width, height, c) {
  const one = (left) =>
    rect(left - 1, top - 1, width + 2, height + 2, c.trim) +
    rect(left, top, width, height, c.pane) +
    rect(left + width / 2 - 0.4, top, 0.8, height, c.trim);
  return lefts.map(one).join('');
}

function door(left, foot, width, height, c) {
  return rect(left, foot - height, width, height, c.door, ' rx="1"');
}

function chimney(left, top, c) {
  return rect(left, top, 6, 16, c.side) + rect(left - 1, top, 8, 2.5, c.edge);
}

function stilts(c) {
  return [2, 18, 32, 52, 70].map((left) => rect(left, -1, 3, 16, c.wood)).join('') + rect(-14, -1, 96, 3.4, c.wood) +
    [-12, -2].map((left) => rect(left, -1, 2.4, 15, c.wood)).join('');
}
