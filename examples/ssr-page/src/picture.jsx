// A landscape for each home, drawn as SVG from the home's number, without image files.
import { Fragment } from 'react';
import { seeded } from './random.js';

const WIDTH = 320;
const HEIGHT = 240;
const HORIZON = 158;

const LIGHTS = [
  { name: 'morning', sky: ['#f6d7b8', '#fbeede'], sun: '#fff6e3', far: '#c9b7b4', mid: '#8f9a98', near: '#4f6f66', trees: ['#415b54', '#364c46'], water: ['#e9cdb4', '#9fb3ad'] },
  { name: 'noon', sky: ['#8ec5dc', '#e3f1f1'], sun: '#fffdf2', far: '#a9c4c9', mid: '#6d9a94', near: '#3c6b57', trees: ['#315847', '#29493b'], water: ['#9fcdd6', '#4f93a1'] },
  { name: 'evening', sky: ['#e7906a', '#f8d59f'], sun: '#fff0c4', far: '#b98488', mid: '#7a5f74', near: '#3f4a5c', trees: ['#343d4b', '#2b323f'], water: ['#eab588', '#7d6a80'] },
  { name: 'dusk', sky: ['#35486f', '#c3a3ad'], sun: '#f7f0e2', far: '#7d83a0', mid: '#4d587a', near: '#27344f', trees: ['#202b41', '#1b2336'], water: ['#8f8fa9', '#36466a'] },
  { name: 'mist', sky: ['#c5d3d0', '#eef2ee'], sun: '#ffffff', far: '#b7c7c4', mid: '#8aa5a0', near: '#55776f', trees: ['#46625b', '#3a514b'], water: ['#d3dedb', '#93aeab'] },
];
const FOOT = 198;
const SHAPES = {
  Cabin: { width: 50, height: 27, windows: [0.3, 0.7] },
  Loft: { width: 50, height: 44, windows: [0.3, 0.7] },
  Farmhouse: { width: 74, height: 27, windows: [0.2, 0.5, 0.8] },
  Lighthouse: { width: 20, height: 62, windows: [0.5] },
};
const WALLS = ['#b5452c', '#f3ede2', '#d9a441', '#5b6f73', '#8a3b2a', '#e5d6bd'];

/** The colours of sky and water, once per page. Every `Picture` refers to them. */
export function Lights() {
  return LIGHTS.map(({ name, sky, water }) => (
    <Fragment key={name}>
      <linearGradient id={`s-${name}`} x2="0" y2="1">
        <stop stopColor={sky[0]} />
        <stop offset=".7" stopColor={sky[1]} />
      </linearGradient>
      <linearGradient id={`w-${name}`} x2="0" y2="1">
        <stop stopColor={water[0]} />
        <stop offset="1" stopColor={water[1]} />
      </linearGradient>
    </Fragment>
  ));
}

export function Picture({ home }) {
  const random = seeded(home.id * 104729);
  const light = random.pick(LIGHTS);
  const sun = { cx: random.whole(60, 260), cy: random.whole(40, 100), fill: light.sun };
  return (
    <svg className="picture" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="xMidYMax slice" role="img" aria-label={`${home.kind} ${home.place.near}, ${light.name}`}>
      <rect width={WIDTH} height={HEIGHT} fill={`url(#s-${light.name})`} />
      <circle {...sun} r="34" opacity=".28" />
      <circle {...sun} r="17" />
      <path d={ridge(random, { height: 84, steps: 7 })} fill={light.far} />
      <path d={ridge(random, { height: 48, steps: 9 })} fill={light.mid} />
      <rect y={HORIZON} width={WIDTH} height={HEIGHT - HORIZON} fill={`url(#w-${light.name})`} />
      <Glints random={random} x={sun.cx} fill={light.sun} />
      <path d={shore(random)} fill={light.near} />
      <House random={random} kind={home.kind} shade={light.near} lit={light.name !== 'noon'} />
      <Trees random={random} shades={light.trees} />
    </svg>
  );
}

function House({ random, kind, shade, lit }) {
  const wall = random.pick(WALLS);
  const { width, height, windows } = SHAPES[kind] ?? SHAPES.Cabin;
  const left = random.whole(96, 190);
  const top = FOOT - height;
  const roof = `M${left - 4} ${top}l${width / 2 + 4}-${width < 30 ? 14 : 20} ${width / 2 + 4} ${width < 30 ? 14 : 20}z`;
  return (
    <g>
      <rect x={left} y={top} width={width} height={height} fill={wall} />
      <path d={roof} fill={shade} />
      <path d={roof} opacity=".25" />
      {windows.map((share) => (
        <rect key={share} x={left + Math.round(width * share) - 3} y={top + 8} width="7" height="9" rx="1" fill={lit ? '#ffe3a1' : '#38505a'} />
      ))}
    </g>
  );
}

function Trees({ random, shades }) {
  const trees = Array.from({ length: random.whole(3, 6) }, (_, index) => ({
    x: index % 2 === 0 ? random.whole(6, 84) : random.whole(246, 312),
    foot: random.whole(199, 214),
    height: random.whole(34, 66),
  }));
  return trees.map(({ x, foot, height }, index) => {
    const half = Math.round(height * 0.22);
    return <path key={index} d={`M${x} ${foot - height}l${half} ${height}h-${half * 2}z`} fill={shades[index % 2]} />;
  });
}

function Glints({ random, x, fill }) {
  return [166, 173, 181].map((y) => (
    <rect key={y} x={x - random.whole(10, 26)} y={y} width={random.whole(22, 48)} height="1.6" fill={fill} opacity=".6" />
  ));
}

/** A line of hills from left to right, closed at the water. */
function ridge(random, { height, steps }) {
  const points = Array.from({ length: steps + 1 }, (_, index) => {
    const rise = index % 2 === 0 ? random.between(0.15, 0.45) : random.between(0.55, 1);
    return `${Math.round((WIDTH / steps) * index)} ${Math.round(HORIZON - height * rise)}`;
  });
  return `M0 ${HORIZON}L${points.join(' ')} ${WIDTH} ${HORIZON}z`;
}

function shore(random) {
  const left = random.whole(186, 200);
  return `M0 ${left}Q80 ${left - 8} 160 193T${WIDTH} ${random.whole(186, 200)}V${HEIGHT}H0z`;
}
