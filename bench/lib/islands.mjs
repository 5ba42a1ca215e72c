// Installs the rendering services of the render scenario into a folder: React 16.14, which npm hypernova needs, for both
// peers, and the two services. Knows packages/render as a package, and not how the services are run.
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { installModules, mustRun } from '../../scripts/steps.mjs';
import { installOnce, npmFolder } from './npm.mjs';
import { ROOT } from './tools.mjs';

export const HYPERNOVA = '2.5.0';
export const REACT = '16.14.0';
const PACKAGE = join(ROOT, 'packages', 'render');
const { dependencies } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
const PACKAGES = [
  `hypernova@${HYPERNOVA}`,
  'hypernova-react@2.1.0',
  `react@${REACT}`,
  `react-dom@${REACT}`,
  // Under other names, because npm hypernova needs old versions under the original ones.
  ...Object.entries(dependencies).map(([name, version]) => `hostler-${name}@npm:${name}@${version}`),
];

const FOLDER = npmFolder(`islands-${HYPERNOVA}-${REACT}`);
const MODULES = join(FOLDER, 'node_modules');

export const services = {
  hypernova: join(FOLDER, 'hypernova.cjs'),
  hostler: join(FOLDER, 'hostler.cjs'),
  folder: FOLDER,
};

/** Packages from npm are installed once. Our own files are copied each time. */
export async function installIslands() {
  await installOnce(FOLDER, PACKAGES, ['--legacy-peer-deps']);
  cpSync(join(ROOT, 'bench', 'apps', 'islands'), FOLDER, { recursive: true });
  await installModules();
  await mustRun('npm', ['run', '--silent', 'build'], { cwd: PACKAGE });
  const ours = join(MODULES, '@hostler', 'render');
  rmSync(ours, { recursive: true, force: true });
  for (const part of ['dist', 'package.json']) cpSync(join(PACKAGE, part), join(ours, part), { recursive: true });
  for (const name of Object.keys(dependencies)) cpSync(join(MODULES, `hostler-${name}`), join(ours, 'node_modules', name), { recursive: true });
}

const TOWNS = ['Reine', 'Portree', 'Furnas', 'Hallstatt', 'Visby'];
const TAGS = ['Fireplace', 'Sea view', 'Kitchen', 'Wifi', 'Sauna', 'Boat'];

/** Batches with one job: the island of a search page, and one with nothing to render, which shows only the cost of the transfer. */
export const ISLANDS = {
  homes: { title: 'a list of 16 homes', batch: batchOf('Homes', { title: 'Homes near you', homes: Array.from({ length: 16 }, (_, i) => home(i)) }) },
  button: { title: 'a button', batch: batchOf('Button', { label: 'Reserve' }) },
};

function home(i) {
  return {
    id: 1000 + i,
    name: `Cabin & boathouse no. ${i}`,
    town: TOWNS[i % TOWNS.length],
    nightly: 60 + ((i * 37) % 180),
    rating: 4 + (i % 10) / 10,
    reviews: (i * 13) % 200,
    tags: TAGS.slice(i % 4, (i % 4) + 3),
    photo: `https://images.example.com/homes/${1000 + i}.jpg?w=640&h=426`,
    isSaved: i % 5 === 0,
  };
}

function batchOf(name, data) {
  return JSON.stringify({ [name]: { name, data } });
}
