// The plots of the last fifteen minutes, drawn by uPlot. Knows samples and no Status.
import { at, element, say } from './elements.js';
import { MANY, clock, count, millis } from './format.js';
import { readColours } from './lanes.js';

const MOST = 180;
const STEP = 5;

/** Each plot: its title, its lines as `[name, colour, value of a sample, dashed]`, and how it writes values. */
const PLOTS = [
  ['Requests a second', count, [['all', 'ok', (sample) => sample.requests], ['5xx', 'error', (sample) => sample.errors], ['refused', 'refused', (sample) => sample.refused, true]]],
  ['Queue wait', millis, [['p50', 'ok', (_, pool) => pool?.wait[0]], ['p99', 'wait', (_, pool) => pool?.wait[1], true]]],
  ['Worker time', millis, [['p50', 'ok', (_, pool) => pool?.work[0]], ['p99', 'client', (_, pool) => pool?.work[1], true]]],
  ['Slots', count, [['in use', 'ok', (_, pool) => pool?.in_use], ['slots', 'left', (_, pool) => (pool?.slots < MANY ? pool.slots : null), true], ['waiting', 'wait', (_, pool) => pool?.queue]]],
];

let samples = [];
let marks = [];
let drawn = [];
let chosen = null;

export function begin() {
  at('pool-select').addEventListener('change', ({ target }) => ((chosen = target.value), show()));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', make);
  addEventListener('resize', () => drawn.forEach(({ plot, node }) => plot.setSize({ width: node.clientWidth, height: 150 })));
}

/** The samples with new ones. Those that are later are gone: the clock of the server was set back, and the time of a plot only goes on. */
export function followed(before, news) {
  return [...before.filter((sample) => sample.at < news[0].at), ...news].slice(-MOST);
}

/** Takes all samples, or the newest one. */
export function take(data, isAll) {
  samples = isAll ? data.samples : followed(samples, data.samples);
  marks = data.marks;
  const names = Object.keys(samples.at(-1)?.pools ?? {});
  const select = at('pool-select');
  if ([...select.options].map(({ value }) => value).join('\n') !== names.join('\n')) {
    select.replaceChildren(...names.map((name) => element('option', { value: name }, name)));
  }
  if (!names.includes(chosen)) chosen = names[0] ?? null;
  if (chosen) select.value = chosen;
  at('pool-choice').hidden = names.length < 2;
  if (drawn.length === 0) make();
  else show();
}

function make() {
  if (samples.length === 0) return;
  const colours = readColours();
  drawn.forEach(({ plot }) => plot.destroy());
  drawn = PLOTS.map(([title, write, lines]) => {
    const [text, node] = [element('p'), element('div', { class: 'plot', role: 'img', 'aria-label': title })];
    return { title, write, lines, text, node };
  });
  at('plots').replaceChildren(...drawn.map(({ title, text, node }) => element('div', { class: 'plot' }, element('h3', {}, title), text, node)));
  for (const each of drawn) each.plot = new globalThis.uPlot(options(each, colours), columns(each.lines), each.node);
  show();
}

function options({ node, lines, write }, colours) {
  const axis = { stroke: colours.quiet, grid: { stroke: colours.line, width: 1 }, ticks: { show: false }, font: '11px system-ui' };
  const series = lines.map(([label, colour, , dashed]) => ({
    label, stroke: colours[colour], width: 2, dash: dashed ? [5, 3] : undefined, points: { show: samples.length < 3 }, spanGaps: false,
  }));
  return {
    width: node.clientWidth, height: 150, legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0],
    scales: { x: { time: true, range: () => range() }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } },
    axes: [{ ...axis, space: 90, size: 26, values: (_, all) => all.map((each) => clock(each).slice(0, 5)) }, { ...axis, size: 58, values: (_, all) => all.map(write) }],
    series: [{}, ...series],
    hooks: { draw: [(plot) => drawMarks(plot, colours)] },
  };
}

function range() {
  const last = samples.at(-1)?.at ?? 0;
  return [last - MOST * STEP, last];
}

/** Deploys and deaths are lines through the plots. */
function drawMarks(plot, colours) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colours.accent;
  ctx.globalAlpha = 0.55;
  ctx.setLineDash([2, 3]);
  for (const mark of marks.filter(({ at: when }) => when >= range()[0])) {
    const x = Math.round(plot.valToPos(mark.at, 'x', true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function columns(lines) {
  return [samples.map((sample) => sample.at), ...lines.map(([, , value]) => samples.map((sample) => value(sample, sample.pools[chosen]) ?? null))];
}

function show() {
  const colours = readColours();
  for (const { plot, lines, write, title, text, node } of drawn) {
    plot.setData(columns(lines));
    const last = samples.at(-1);
    const values = lines.map(([name, colour, value, dashed]) => ({ name, colour, dashed, text: write(value(last, last.pools[chosen])) }));
    text.replaceChildren(...values.map((each) => {
      const swatch = element('i', { class: each.dashed ? 'dashed' : null });
      swatch.style.borderColor = colours[each.colour];
      return element('span', {}, swatch, `${each.name} `, element('b', {}, each.text));
    }));
    node.setAttribute('aria-label', `${title}, last 15 minutes. Now: ${values.map((each) => `${each.name} ${each.text}`).join(', ')}`);
  }
  const shown = marks.filter(({ at: when }) => when >= range()[0]).slice(-8);
  const items = shown.map((mark) => `${clock(mark.at)} ${mark.text}`);
  if (at('marks').children.length !== items.length) at('marks').replaceChildren(...items.map(() => element('li')));
  items.forEach((item, index) => say(at('marks').children[index], item));
}
