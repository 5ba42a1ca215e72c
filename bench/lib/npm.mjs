// Installs packages from npm into folders below bench/.cache, outside of the repository. Does not know what they are for.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, root } from '../../scripts/steps.mjs';

/** The folder with this name. The name contains the versions, so that other versions get another folder. */
export function npmFolder(name) {
  return join(root, 'bench', '.cache', name);
}

/** Installs the packages (`name@version`) into it once. */
export async function installOnce(folder, packages, flags = []) {
  // npm writes this file last.
  if (existsSync(join(folder, 'node_modules', '.package-lock.json'))) return;
  mkdirSync(folder, { recursive: true });
  await mustRun('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--silent', ...flags, ...packages], { cwd: folder });
}

/** The version of an installed package, or null. */
export function installedVersion(folder, name) {
  const file = join(folder, 'node_modules', name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
}
