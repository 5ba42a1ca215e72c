// Renders RESULTS.md, and docs/benchmarks.md with its plots, from results/*.json and nothing else, so that every figure in them was
// measured. `node bench/render.mjs` renders again without measuring.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { benchmarkFiles } from './plots/page.mjs';
import { anyAppSection } from './report/any-app.mjs';
import { cacheSection } from './report/cache.mjs';
import { deploysSection } from './report/deploys.mjs';
import { fairSection } from './report/fair.mjs';
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
  fair: fairSection,
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

const BENCH = fileURLToPath(new URL('.', import.meta.url));
export const DOCS = join(BENCH, '../docs');

export function renderFolder(folder) {
  const file = join(folder, 'RESULTS.md');
  const results = readResults(folder);
  const text = render(results);
  writeFileSync(file, text);
  // A quick run shows that everything works. Its figures belong on no page.
  if (resolve(folder) === resolve(BENCH)) writeDocs(results);
  return { file, text };
}

function writeDocs(results) {
  for (const [name, text] of pages(results)) {
    mkdirSync(dirname(join(DOCS, name)), { recursive: true });
    writeFileSync(join(DOCS, name), text);
  }
}

/** The files of docs/ that show results, as a map from path to text. */
export const pages = (results) => benchmarkFiles(partsOf(results));

const partsOf = (results) => results.map((result) => ({ result, ...SECTIONS[result.scenario](result) }));

export function readResults(folder) {
  return Object.keys(SECTIONS)
    .map((name) => join(folder, 'results', `${name}.json`))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')));
}

export function render(results) {
  const names = Object.keys(SECTIONS).map((name) => `\`${name}\``);
  const parts = partsOf(results);
  return `<!-- Rendered by bench/render.mjs from bench/results/*.json. Do not edit: run \`npm run bench\`. -->
# Bench results

Absolute times are valid for the machine named beside them. Ratios of runs side by side depend less on the machine, but they do.

\`npm run bench\` measures everything again. \`npm run bench -- proxy\` measures one part: ${names.slice(0, -1).join(', ')} or ${names.at(-1)}.
[README.md](README.md) describes the method and its limits.
Hostler is built with a profile of its own load, which comes from short runs of most of these parts. The other programs are as Debian and npm have them, without such a profile. [Decision 39](../docs/decisions/0039-build-profile.md) says what it gains.

${verdictsPage(parts, Object.keys(SECTIONS))}
${parts.map(({ text }) => text).join('\n')}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(`wrote ${renderFolder(BENCH).file}`);
}
