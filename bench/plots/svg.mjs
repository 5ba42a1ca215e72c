// Draws figures of bars as SVG, for light and dark pages. The same figure always gives the same text. Knows no scenario.
import { number } from '../report/format.mjs';

const WIDTH = 560;
const MARGIN = 20;
const ROW = 40;
const BAR = 12;
const INNER = WIDTH - 2 * MARGIN;

const STYLE = `
  .card { fill: #fbfaf7; stroke: #e0ddd3 }
  .title { font-size: 17px; font-weight: 650; fill: #1c2826 }
  .panel { font-size: 14px; font-weight: 600; fill: #1c2826 }
  .hint { font-size: 13px; fill: #55625f }
  .label, .value { font-size: 14px; fill: #1c2826 }
  .value { text-anchor: end }
  .own { font-weight: 650 }
  .track { fill: #e9e7e0 }
  .bar { fill: #93a19c }
  .bar.own { fill: #17705f }
  .bar.ideal { fill: none; stroke: #55625f; stroke-dasharray: 4 3 }
  .range { stroke: #1c2826; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #171d26; stroke: #333d4b }
    .title, .panel, .label, .value { fill: #e6e9ee }
    .hint { fill: #a5b0bd }
    .track { fill: #252d39 }
    .bar { fill: #6f7d8f }
    .bar.own { fill: #3fb89d }
    .bar.ideal { stroke: #a5b0bd }
    .range { stroke: #e6e9ee }
  }`;

/**
 * A figure: `{ title, better, panels: [{ title, unit, bars: [{ label, median, min, max, kind }] }] }`. Each panel has a scale of its own, which
 * begins at 0. `kind` is `own` for Hostler, `ideal` for what is simulated.
 */
export function draw({ title, better, panels }) {
  let y = MARGIN + 16;
  const parts = [text('title', MARGIN, y, title), text('hint', MARGIN, (y += 20), `${better} is better. A line shows the smallest and the largest run.`)];
  for (const panel of panels) {
    if (panel.title) parts.push(text('panel', MARGIN, (y += 30), panel.title));
    const most = Math.max(...panel.bars.flatMap(({ median, max }) => [median, max ?? median]).filter(Number.isFinite), 0);
    for (const bar of panel.bars) {
      y += ROW;
      parts.push(...row(bar, { y, unit: panel.unit, digits: panel.digits, scale: most > 0 ? INNER / most : 0 }));
    }
  }
  const height = y + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="t d" font-family="ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif">
<title id="t">${escaped(title)}</title>
<desc id="d">${escaped(described({ better, panels }))}</desc>
<style>${STYLE}
</style>
<rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="12"/>
${parts.join('\n')}
</svg>
`;
}

function row({ label, median, min, max, kind = '' }, { y, unit, digits, scale }) {
  const end = (value) => round(MARGIN + (Number.isFinite(value) ? value * scale : INNER));
  const [top, middle] = [y - BAR + 4, round(y - BAR / 2 + 4)];
  const words = kind === 'own' ? 'own' : '';
  const has = Number.isFinite(min) && Number.isFinite(max) && max > min;
  return [
    text(`label ${words}`.trim(), MARGIN, top - 6, label),
    text(`value ${words}`.trim(), WIDTH - MARGIN, top - 6, written(median, unit, digits)),
    `<rect class="track" x="${MARGIN}" y="${top}" width="${INNER}" height="${BAR}" rx="3"/>`,
    `<rect class="${`bar ${kind}`.trim()}" x="${MARGIN}" y="${top}" width="${Math.max(1, round(end(median) - MARGIN))}" height="${BAR}" rx="3"/>`,
    ...(has ? [`<path class="range" d="M${end(min)} ${middle}H${end(max)}M${end(min)} ${middle - 3}v6M${end(max)} ${middle - 3}v6"/>`] : []),
  ];
}

/** What a reader who sees no picture is told. */
function described({ better, panels }) {
  const told = panels.map(({ title, unit, digits, bars }) => `${title ? `${title}: ` : ''}${bars.map(({ label, median }) => `${label} ${written(median, unit, digits)}`).join(', ')}.`);
  return `${told.join(' ')} ${better} is better.`;
}

const written = (value, unit, digits) => (Number.isFinite(value) ? `${number(value, digits)}${unit ? ` ${unit}` : ''}` : 'never');
const text = (kind, x, y, words) => `<text class="${kind}" x="${x}" y="${y}">${escaped(words)}</text>`;
const round = (value) => Math.round(value * 10) / 10;
const escaped = (words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
