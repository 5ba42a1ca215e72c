// Draws the stand-in's photos: hills under a sky, with a line of text about the photo. Knows no HTTP.
import { looks } from './catalogue.js';

export function draw(id, { label, width, height }) {
  const { hue, seed } = looks(id);
  const unit = Math.min(width, height) / 100;
  const hills = [0, 1, 2].map((layer) => hill({ layer, width, height, hue, seed }));
  const sun = { x: width * (0.2 + (seed[4] / 255) * 0.6), y: height * (0.18 + (seed[5] / 255) * 0.2), r: unit * 9 };
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<title>Drawn by the stand-in for Flickr: photo ${id}, ${label}, ${width} x ${height}</title>
<defs><linearGradient id="sky" x1="0" y1="0" x2="0" y2="1">
<stop offset="0" stop-color="hsl(${195 + (hue % 40)} 60% 58%)"/><stop offset="1" stop-color="hsl(${20 + (hue % 35)} 85% 86%)"/>
</linearGradient></defs>
<rect width="100%" height="100%" fill="url(#sky)"/>
<circle cx="${round(sun.x)}" cy="${round(sun.y)}" r="${round(sun.r)}" fill="hsl(45 95% 92%)"/>
${hills.join('\n')}
<text x="50%" y="${round(height - 5 * unit)}" text-anchor="middle" font-family="sans-serif" font-size="${round(3.8 * unit)}" fill="#fff">stand-in photo ${id} · ${label} · ${width} × ${height}</text>
</svg>
`;
}

function hill({ layer, width, height, hue, seed }) {
  const base = height * (0.52 + layer * 0.16);
  const reach = height * 0.16;
  const at = (step) => round(base + ((seed[8 + layer * 5 + step] / 255) - 0.5) * reach);
  const third = round(width / 3);
  const curve = `M0 ${at(0)} C${third} ${at(1)} ${round(width / 2)} ${at(2)} ${2 * third} ${at(3)} S${width} ${at(4)} ${width} ${at(4)}`;
  return `<path d="${curve} V${height} H0 Z" fill="hsl(${85 + (hue % 75) + layer * 14} 38% ${52 - layer * 14}%)"/>`;
}

const round = (value) => Math.round(value * 10) / 10;
