// Makes the Debian package with dpkg-deb: program, systemd unit, configuration file, man pages, completions. Builds no program.
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { dirname, join } from 'node:path';
import { mustRun, root } from '../steps.mjs';
import { READABLE } from './tree.mjs';

const SCRIPTS = ['postinst', 'prerm', 'postrm'];
/** dpkg asks before it replaces these if the operator has changed them. */
const CONFFILES = ['etc/hostler/hostler.toml'];

/** Packs hostler_VERSION_ARCHITECTURE.deb. `layOut` fills a folder as below /usr. */
export async function packDeb(target, { version, stage, dist, layOut }) {
  const folder = join(stage, `deb-${target.name}`);
  layOut(join(folder, 'usr'));
  const put = (from, to, mode = 0o644) => {
    mkdirSync(dirname(join(folder, to)), { recursive: true });
    copyFileSync(join(root, 'packaging/debian', from), join(folder, to));
    chmodSync(join(folder, to), mode);
  };
  put('hostler.service', 'usr/lib/systemd/system/hostler.service');
  put('hostler.toml', 'etc/hostler/hostler.toml');
  put('copyright', 'usr/share/doc/hostler/copyright');
  const changelog = `hostler (${debianVersion(version)}) unstable; urgency=medium\n\n  * CHANGELOG.md beside this file has the changes.\n\n -- Hostler <hostler@localhost>  Thu, 01 Jan 1970 00:00:00 +0000\n`;
  writeFileSync(join(folder, 'usr/share/doc/hostler/changelog.gz'), gzipSync(changelog, { level: 9 }));
  for (const script of SCRIPTS) put(script, `DEBIAN/${script}`, 0o755);
  writeFileSync(join(folder, 'DEBIAN/conffiles'), CONFFILES.map((path) => `/${path}\n`).join(''));
  const files = filesBelow(folder).filter((path) => !path.startsWith('DEBIAN/'));
  const bytes = files.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0);
  const sums = files.map((path) => `${createHash('md5').update(readFileSync(join(folder, path))).digest('hex')}  ${path}\n`);
  writeFileSync(join(folder, 'DEBIAN/md5sums'), sums.filter((line) => !CONFFILES.some((path) => line.endsWith(`  ${path}\n`))).join(''));
  const control = readFileSync(join(root, 'packaging/debian/control'), 'utf8')
    .replace('@VERSION@', debianVersion(version))
    .replace('@ARCHITECTURE@', target.debian)
    .replace('@GLIBC@', target.glibc)
    .replace('@SIZE@', String(Math.ceil(bytes / 1024)));
  writeFileSync(join(folder, 'DEBIAN/control'), control);
  await mustRun('chmod', ['-R', READABLE, folder]);
  await mustRun('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', folder, dist]);
}

/** With a hyphen 0.2.0-rc.1 would be newer than 0.2.0 for dpkg: the part behind it would be the package's revision. A tilde sorts before the end. */
export function debianVersion(version) {
  return version.replaceAll('-', '~');
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1))
    .sort();
}
