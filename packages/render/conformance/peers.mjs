// Installs Hypernova as released by Airbnb, and our package beside it, into a folder. Starts neither.
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const PACKAGE = join(HERE, '..');
const SITE = join(HERE, 'site');
const run = promisify(execFile);

/** `folder`: the folder of an app with everything installed. `python`: an interpreter with pyramid-hypernova, or null, with the reason in `why`. */
export async function installPeers() {
  const folder = join(HERE, '.cache', `site-${fingerprint('package-lock.json')}`);
  if (!existsSync(join(folder, 'node_modules', '.package-lock.json'))) {
    mkdirSync(folder, { recursive: true });
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(SITE, name), join(folder, name));
    await run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder });
  }
  for (const name of ['service.cjs', 'client.py']) cpSync(join(SITE, name), join(folder, name));
  installOurs(folder);
  return { folder, require: createRequire(join(folder, 'package.json')), ...(await installPython()) };
}

/** A copy, not a link, so that it uses the app's React and not the workspace's. */
function installOurs(folder) {
  const target = join(folder, 'node_modules', '@hostler', 'render');
  if (!existsSync(join(PACKAGE, 'dist', 'server.js'))) throw new Error('packages/render is not built: npm run build -w @hostler/render');
  rmSync(target, { recursive: true, force: true });
  for (const name of ['package.json', 'dist']) cpSync(join(PACKAGE, name), join(target, name), { recursive: true });
  const require = createRequire(join(PACKAGE, 'package.json'));
  for (const name of Object.keys(require('./package.json').dependencies)) {
    cpSync(join(PACKAGE, '..', '..', 'node_modules', name), join(target, 'node_modules', name), { recursive: true });
  }
}

async function installPython() {
  const venv = join(HERE, '.cache', `python-${fingerprint('requirements.txt')}`);
  const python = join(venv, 'bin', 'python');
  const whole = join(venv, 'installed');
  if (existsSync(whole)) return { python };
  if (spawnSync('python3', ['-c', 'import venv, ensurepip']).status !== 0) return { python: null, why: 'there is no python3 with venv and pip' };
  try {
    await run('python3', ['-m', 'venv', venv]);
    await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', join(SITE, 'requirements.txt')]);
  } catch (error) {
    return { python: null, why: `pip could not install it: ${error.stderr || error.message}` };
  }
  writeFileSync(whole, '');
  return { python };
}

function fingerprint(name) {
  return createHash('sha256').update(readFileSync(join(SITE, name))).digest('hex').slice(0, 10);
}
