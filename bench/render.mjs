// Renders RESULTS.md from results/*.json and nothing else, so that every figure in it was measured. `node
// bench/render.mjs` renders again without measuring.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { anyAppSection } from './report/any-app.mjs';
import { cacheSection } from './report/cache.mjs';
import { deploysSection } from './report/deploys.mjs';
import { idleSection } from './report/idle.mjs';
import { lookupsSection } from './report/lookups.mjs';
import { manyAppsSection } from './report/many-apps.mjs';
import { memcachedSection } from './report/memcached.mjs';
import { overloadSection } from './report/overload.mjs';
import { photosSection } from './report/photos.mjs';
import { proxySection } from './report/proxy.mjs';
import { renderSection } from './report/render.mjs';
import { scaleSection } from './report/scale.mjs';
import { tailSection } from './report/tail.mjs';
import { tlsSection } from './report/tls.mjs';
import { verdictsPage } from './report/verdicts.mjs';
import { websocketsSection } from './report/websockets.mjs';

const SECTIONS = {
  proxy: proxySection,
  scale: scaleSection,
  tail: tailSection,
  overload: overloadSection,
  deploys: deploysSection,
  idle: idleSection,
  render: renderSection,
  photos: photosSection,
  tls: tlsSection,
  websockets: websocketsSection,
  cache: cacheSection,
  memcached: memcachedSection,
  lookups: lookupsSection,
  'any-app': anyAppSection,
  'many-apps': manyAppsSection,
};

export function renderFolder(folder) {
  const file = join(folder, 'RESULTS.md');
  const text = render(readResults(folder));
  writeFileSync(file, text);
  return { file, text };
}

export function readResults(folder) {
  return Object.keys(SECTIONS)
    .map((name) => join(folder, 'results', `${name}.json`))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')));
}

export function render(results) {
  const names = Object.keys(SECTIONS).map((name) => `\`${name}\``);
  const parts = results.map((result) => ({ result, ...SECTIONS[result.scenario](result) }));
  return `<!-- Rendered by bench/render.mjs from bench/results/*.json. Do not edit: run \`npm run bench\`. -->
# Bench results

Absolute times are valid for the machine named beside them. Ratios of runs side by side are valid for other machines too.

\`npm run bench\` measures everything again. \`npm run bench -- proxy\` measures one part: ${names.slice(0, -1).join(', ')} or ${names.at(-1)}.
[README.md](README.md) describes the method and its limits.

${verdictsPage(parts, Object.keys(SECTIONS))}
${parts.map(({ text }) => text).join('\n')}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(`wrote ${renderFolder(fileURLToPath(new URL('.', import.meta.url))).file}`);
}
