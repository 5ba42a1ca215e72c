// Installs the Debian package and the tar archive into fresh Debian systems, serves a request, and removes the package again.
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { freshDebian, runIn, serveIn } from './root.mjs';
import { archiveOf, expect, only, theNode, VERSION } from './steps.mjs';

const SUITES = ['bullseye', 'bookworm'];
const APP = "require('http').createServer((request, response) => response.end('served by the app')).listen(3000);";
const CONFIG = '/etc/hostler/hostler.toml';

/** One trial for each Debian. */
export function debianTrials({ dist, folder, cpu }) {
  return SUITES.map((suite) => ({
    name: `Debian package, ${suite}`,
    run: async () => tryPackage(await freshDebian(suite, join(folder, suite)), only(dist, new RegExp(`^hostler_.*_${cpu.debian}\\.deb$`))),
  }));
}

/** The archive, unpacked below /usr/local. The newest Debian serves as "another Linux". */
export function tarTrials({ dist, folder, cpu }) {
  return ['gnu', 'musl'].map((libc) => ({
    name: `tar archive, ${libc}`,
    run: async () => {
      const system = await freshDebian(SUITES.at(-1), join(folder, `tar-${libc}`));
      const archive = only(dist, archiveOf(`linux-${cpu.npm}-${libc}`));
      copyFileSync(archive, join(system, 'tmp/hostler.tar.gz'));
      runIn(system, ['tar', '-xzf', '/tmp/hostler.tar.gz', '-C', '/usr/local', '--strip-components=1']);
      expect('--version', runIn(system, ['hostler', '--version']), VERSION);
      await serveApp(system);
    },
  }));
}

async function tryPackage(system, deb) {
  copyFileSync(deb, join(system, 'tmp', basename(deb)));
  runIn(system, ['apt-get', 'update', '--quiet'], { online: true });
  const install = ['apt-get', 'install', '--yes', '--no-install-recommends', `/tmp/${basename(deb)}`];
  runIn(system, install, { online: true });
  expect('--version', runIn(system, ['hostler', '--version']), VERSION);
  expect('check', runIn(system, ['hostler', 'check', '-c', CONFIG], { user: 'hostler:hostler' }), /hostler\.toml/);
  expect('dpkg --verify', runIn(system, ['dpkg', '--verify', 'hostler']), /^$/);
  const files = runIn(system, ['dpkg', '--listfiles', 'hostler']);
  for (const file of ['systemd/system/hostler.service', 'completions/hostler', 'vendor-completions/_hostler', 'man1/hostler-run.1.gz']) expect('files', files, new RegExp(`/${file}\n`));

  // As the unit starts it: the user hostler, with the right to open port 80 and no other.
  const start = ['hostler', 'start', '--config', CONFIG];
  const service = await serveIn(system, start, { port: 80, user: 'hostler:hostler', capability: 'net_bind_service' });
  expect('answer', service.get('/'), /^Hostler is installed\. Next:/);
  await service.stop();
  await serveApp(system);

  runIn(system, ['apt-get', 'install', '--yes', '--reinstall', `/tmp/${basename(deb)}`], { online: true });
  runIn(system, ['apt-get', 'remove', '--yes', 'hostler']);
  expect('the program after "apt remove"', String(existsSync(join(system, 'usr/bin/hostler'))), /false/);
  expect('the configuration after "apt remove"', String(existsSync(join(system, CONFIG))), /true/);
  mkdirSync(join(system, 'var/log/hostler'), { recursive: true });
  runIn(system, ['apt-get', 'purge', '--yes', 'hostler']);
  expect('the configuration after "apt purge"', String(existsSync(join(system, CONFIG))), /false/);
  expect('the logs after "apt purge"', String(existsSync(join(system, 'var/log/hostler'))), /false/);
}

/** `hostler run -- node server.js` with the Node that tests have, because an old Debian has an old Node. */
async function serveApp(system) {
  const node = theNode();
  copyFileSync(node, join(system, 'usr/local/bin/node'));
  copyLibraries(system);
  mkdirSync(join(system, 'srv/app'), { recursive: true });
  writeFileSync(join(system, 'srv/app/server.js'), APP);
  const run = ['hostler', 'run', '--listen', '127.0.0.1:8080', '--', 'node', 'server.js'];
  const service = await serveIn(system, run, { port: 8080, user: 'nobody:nogroup', folder: '/srv/app' });
  expect('answer of the app', service.get('/'), /^served by the app$/);
  await service.stop();
}

/** Node needs libstdc++, which a minimal Debian may lack. */
function copyLibraries(system) {
  const libraries = join(system, 'usr/lib', readdirSync(join(system, 'usr/lib')).find((name) => name.endsWith('-linux-gnu')));
  if (readdirSync(libraries).some((name) => name.startsWith('libstdc++'))) return;
  runIn(system, ['apt-get', 'update', '--quiet'], { online: true });
  runIn(system, ['apt-get', 'install', '--yes', '--no-install-recommends', 'libstdc++6'], { online: true });
}

/** The folder of a fresh Debian with Node, npm and the user `node`, as in the image node:*-slim. */
export async function debianWithNode(into) {
  const system = await freshDebian(SUITES.at(-1), into);
  copyFileSync(theNode(), join(system, 'usr/local/bin/node'));
  copyLibraries(system);
  const npm = join(process.execPath, '../../lib/node_modules/npm');
  cpSync(npm, join(system, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true });
  writeFileSync(join(system, 'usr/local/bin/npm'), '#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/npm-cli.js "$@"\n', { mode: 0o755 });
  runIn(system, ['useradd', '--uid', '1000', '--create-home', 'node']);
  return system;
}
