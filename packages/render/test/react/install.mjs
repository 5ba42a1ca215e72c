// Installs each version of React for the tests into its own folder, from its lockfile. Knows no test.
import { fileURLToPath } from 'node:url';
import { installModules } from '../../../../scripts/steps.mjs';

export const VERSIONS = [16, 17, 18, 19];

export function folderOf(version) {
  return fileURLToPath(new URL(`./${version}/`, import.meta.url));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const version of VERSIONS) await installModules(`packages/render/test/react/${version}`);
}
