// Packages from npm, in folders of their own below bench/.cache: nothing of them is part of the repository. Knows not what they are for.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, root } from '../../scripts/steps.mjs';

/** The folder of this name; a name with the versions in it, so that others get a folder of their own. */
export function npmFolder(name) {
  return join(root, 'bench', '.cache', name);
}

/** Installs the packages (`name@version`) there once. */
export async function installOnce(folder, packages, flags = []) {
  // npm writes this file last.
  if (existsSync(join(folder, 'node_modules', '.package-lock.json'))) return;
  mkdirSync(folder, { recursive: true });
  await mustRun('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--silent', ...flags, ...packages], { cwd: folder });
}

/** The version of a package there; null if it is not there. */
export function installedVersion(folder, name) {
  const file = join(folder, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
}
