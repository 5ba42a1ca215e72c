// Installs each React that the tests run with into a folder of its own, from its lockfile. Knows no test.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const VERSIONS = [16, 17, 18, 19];

export function folderOf(version) {
  return fileURLToPath(new URL(`./${version}/`, import.meta.url));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const folder of VERSIONS.map(folderOf)) {
    if (modified(`${folder}node_modules/.package-lock.json`) >= modified(`${folder}package-lock.json`)) continue;
    const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--silent'], { cwd: folder, stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
