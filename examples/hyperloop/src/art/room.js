// A picture of a stay from inside: a room with a window and the view.
import { LIGHTS, mix } from './light.js';
import { seeded } from './random.js';
import { scene } from './scene.js';
import { circle, ellipse, path, rect } from './shapes.js';

const WALLS = ['#e9d8c0', '#c9d5cd', '#d9b9a3', '#b9c6d3', '#e6ddcf'];
const CLOTHS = ['#c8553d', '#2f6b6b', '#d9a23c', '#4c5c87', '#8a5a7a'];

export function room({ key, id, setting, kind, part, light, w, h }) {
  const random = seeded(id * 7907 + part.length);
  const wall = random.pick(WALLS);
  const cloth = random.pick(CLOTHS);
  const other = random.pick(CLOTHS);
  const floor = h * 0.74;
  const view = { x: w * 0.27, y: h * 0.12, w: w * 0.46, h: h * 0.42 };
  const outside = scene({ key: `${key}v`, id: id + 3, setting, kind, light, w: 460, h: 320, house: false });
  const frame = '#f6efe3';
  const glow = LIGHTS[light].sun;
  return (
    rect(0, 0, w, h, wall) + boards(w, h, floor) +
    rect(view.x - 12, view.y - 12, view.w + 24, view.h + 24, frame, ' rx="3"') +
    `<svg x="${view.x}" y="${view.y}" width="${view.w}" height="${view.h}" viewBox="0 0 460 320" preserveAspectRatio="xMidYMid slice">${outside}</svg>` +
    rect(view.x + view.w / 2 - 3, view.y, 6, view.h, frame) + rect(view.x, view.y + view.h * 0.34, view.w, 4, frame) +
    rect(view.x - 22, view.y + view.h + 12, view.w + 44, 9, mix(frame, '#a08a70', 0.25)) +
    path(
      glow,
      ['M', view.x + view.w * 0.1, floor, 'L', view.x - w * 0.08, h, 'H', view.x + view.w * 0.62, 'L', view.x + view.w * 0.66, floor, 'Z'],
      ' opacity=".22"',
    ) +
    curtain(view.x - 20, view.y - 22, view.h + 70, mix(other, '#ffffff', 0.55), 1) +
    curtain(view.x + view.w + 20, view.y - 22, view.h + 70, mix(other, '#ffffff', 0.55), -1) +
    (part === 'sitting' ? sitting({ w, h, cloth, other }) : sleeping({ w, h, cloth, other }))
  );
}

function boards(w, h, floor) {
  const lines = [0.28, 0.6].map((share) => rect(0, floor + (h - floor) * share, w, 2, '#8a6242', ' opacity=".5"')).join('');
  return rect(0, floor, w, h - floor, '#b78a62') + lines + rect(0, floor - 10, w, 10, '#f6efe3');
}

function curtain(x, y, high, fill, side) {
  const wide = 44 * side;
  return path(
    fill,
    ['M', x - wide * 0.5, y, 'H', x + wide * 0.7, 'Q', x + wide * 0.6, y + high * 0.6, x + wide * 0.2, y + high, 'H', x - wide * 0.5, 'Z'],
  ) +
    path(
      '#000000',
      ['M', x, y, 'Q', x + wide * 0.1, y + high * 0.6, x - wide * 0.12, y + high, 'H', x - wide * 0.3, 'V', y, 'Z'],
      ' opacity=".07"',
    );
}

function sitting({ w, h, cloth, other }) {
  const [dark, light] = [mix(cloth, '#1b2238', 0.28), mix(cloth, '#ffffff', 0.14)];
  const foot = h * 0.9;
  const chair = w * 0.6;
  return (
    ellipse(w * 0.5, h * 0.9, w * 0.36, h * 0.075, mix(other, '#ffffff', 0.35)) +
    ellipse(w * 0.5, h * 0.9, w * 0.29, h * 0.055, 'none', ' stroke="#fffaf0" stroke-width="3" opacity=".7"') +
    rect(chair + 8, foot - 26, 7, 28, '#5a4030') + rect(chair + w * 0.2, foot - 26, 7, 28, '#5a4030') +
    path(
      cloth,
      [
        'M', chair, foot - h * 0.36, 'q', w * 0.02, -h * 0.05, w * 0.07, -h * 0.05, 'h', w * 0.1, 'q', w * 0.06, 0, w * 0.07, h * 0.05, 'V',
        foot - 20, 'H', chair, 'Z',
      ],
    ) +
    rect(chair - w * 0.02, foot - h * 0.17, w * 0.29, h * 0.12, light, ' rx="12"') +
    rect(chair - w * 0.035, foot - h * 0.23, w * 0.055, h * 0.19, dark, ' rx="11"') +
    rect(chair + w * 0.225, foot - h * 0.23, w * 0.055, h * 0.19, dark, ' rx="11"') +
    path(mix(other, '#ffffff', 0.1), ['M', chair + w * 0.06, foot - h * 0.3, 'h', w * 0.1, 'l', w * 0.015, h * 0.12, 'h', -w * 0.12, 'Z']) +
    rect(w * 0.155, h * 0.34, 5, foot - h * 0.34, '#4a3a30') +
    path('#f3d9a4', ['M', w * 0.11, h * 0.4, 'L', w * 0.135, h * 0.27, 'H', w * 0.185, 'L', w * 0.21, h * 0.4, 'Z']) +
    circle(w * 0.16, h * 0.38, h * 0.19, '#ffe9b0', ' opacity=".16"') +
    ellipse(w * 0.16, foot, w * 0.04, 5, '#4a3a30') +
    rect(w * 0.34, foot - h * 0.12, w * 0.17, 7, '#6f4a30', ' rx="2"') + rect(w * 0.36, foot - h * 0.11, 5, h * 0.11, '#6f4a30') +
    rect(w * 0.48, foot - h * 0.11, 5, h * 0.11, '#6f4a30') +
    rect(w * 0.37, foot - h * 0.16, w * 0.035, h * 0.042, '#fffaf0', ' rx="3"') + rect(w * 0.43, foot - h * 0.135, w * 0.06, 6, '#c8553d') +
    rect(w * 0.435, foot - h * 0.15, w * 0.055, 6, '#2f6b6b') +
    plant(w * 0.9, foot, h * 0.42)
  );
}

function sleeping({ w, h, cloth, other }) {
  const foot = h * 0.95;
  const [left, wide] = [w * 0.2, w * 0.6];
  const stripe = (share) => {
    const bow = ['M', left - 8, h * share, 'Q', left + wide * 0.5, h * (share - 0.04), left + wide + 8, h * share];
    return path('none', bow, ' stroke="#fffaf0" stroke-width="4" opacity=".55"');
  };
  const blanket = mix(cloth, '#ffffff', 0.08);
  return (
    rect(left - 8, h * 0.5, wide + 16, h * 0.34, '#7a5236', ' rx="12"') + rect(left, h * 0.63, wide, h * 0.24, '#fbf6ec', ' rx="10"') +
    rect(left + wide * 0.07, h * 0.56, wide * 0.38, h * 0.12, '#ffffff', ' rx="14"') +
    rect(left + wide * 0.55, h * 0.56, wide * 0.38, h * 0.12, '#ffffff', ' rx="14"') +
    rect(left + wide * 0.33, h * 0.6, wide * 0.34, h * 0.09, mix(other, '#ffffff', 0.2), ' rx="12"') +
    path(
      blanket,
      [
        'M', left - 4, h * 0.73, 'Q', left + wide * 0.5, h * 0.69, left + wide + 4, h * 0.73, 'L', left + wide + 16, foot, 'H', left - 16,
        'Z',
      ],
    ) +
    [0.8, 0.86, 0.92].map(stripe).join('') +
    rect(w * 0.06, h * 0.68, w * 0.11, 7, '#6f4a30') + rect(w * 0.075, h * 0.68, w * 0.08, h * 0.2, '#8a5f40') +
    path('#f3d9a4', ['M', w * 0.085, h * 0.6, 'l', w * 0.012, -h * 0.08, 'h', w * 0.036, 'l', w * 0.012, h * 0.08, 'Z']) +
    rect(w * 0.112, h * 0.6, 5, h * 0.08, '#4a3a30') + circle(w * 0.115, h * 0.58, h * 0.13, '#ffe9b0', ' opacity=".2"') +
    plant(w * 0.92, h * 0.92, h * 0.34)
  );
}

function plant(x, foot, high) {
  const leaf = (lean, long, fill) => path(
    fill,
    [
      'M', x, foot - high * 0.28, 'Q', x + lean * 0.3, foot - high * long, x + lean, foot - high * long, 'Q', x + lean * 0.9,
      foot - high * 0.45, x, foot - high * 0.28, 'Z',
    ],
  );
  const leaves = leaf(-high * 0.34, 0.8, '#3f7a52') + leaf(high * 0.34, 0.84, '#4f9162') + leaf(-high * 0.16, 1, '#4f9162') +
    leaf(high * 0.15, 1.04, '#3f7a52');
  return leaves +
    path('#c8714d', ['M', x - high * 0.14, foot - high * 0.3, 'H', x + high * 0.14, 'L', x + high * 0.1, foot, 'H', x - high * 0.1, 'Z']);
}
