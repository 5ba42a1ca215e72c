// Makes the npm packages: `hostler` with the launcher, and one with the program for each target. Builds no program.
import { copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, root } from '../steps.mjs';
import { TARGETS } from './targets.mjs';
import { layOutDocs } from './tree.mjs';

/** Packs the program of one target into `dist`, as @hostler/TARGET. */
export async function packPlatform(target, { program, version, stage, dist }) {
  const folder = join(stage, `npm-${target.name}`);
  renew(join(folder, 'bin'));
  copyFileSync(program, join(folder, 'bin/hostler'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'README.md'), `# ${nameOf(target)}\n\nThe program of the package \`hostler\` for ${target.name}. Install \`hostler\`, which installs this.\n`);
  writeJson(join(folder, 'package.json'), {
    name: nameOf(target),
    version,
    description: `The program of hostler for ${target.name}.`,
    license: 'Apache-2.0',
    os: ['linux'],
    cpu: [target.cpu],
    libc: [target.libc],
    preferUnplugged: true, // Yarn keeps packages in zip files, and a program in a zip file cannot be started.
    files: ['bin'],
    ...builtFrom(process.env),
  });
  await pack(folder, dist);
}

/** Packs the launcher into `dist`. All targets are its optional dependencies: npm installs those that fit the machine. */
export async function packLauncher({ extras, version, stage, dist }) {
  const folder = join(stage, 'npm');
  renew(folder);
  cpSync(join(root, 'packaging/npm'), folder, { recursive: true });
  cpSync(join(extras, 'man'), join(folder, 'man'), { recursive: true });
  cpSync(join(extras, 'completions'), join(folder, 'completions'), { recursive: true });
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  layOutDocs(folder);
  const written = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const optionalDependencies = Object.fromEntries(TARGETS.map((target) => [nameOf(target), version]));
  // File by file: npm takes a folder for a page without a section, and then refuses a global installation (EBADMAN).
  const man = readdirSync(join(folder, 'man')).sort().map((page) => `man/${page}`);
  writeJson(join(folder, 'package.json'), { ...written, version, man, optionalDependencies, ...builtFrom(process.env) });
  await pack(folder, dist);
}

/** The repository, where GitHub builds: npm refuses a package with a proof of provenance that does not name it. */
function builtFrom({ GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name }) {
  return server && name ? { repository: { type: 'git', url: `git+${server}/${name}.git` } } : {};
}

const nameOf = (target) => `@hostler/${target.name}`;

function renew(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

async function pack(folder, dist) {
  await mustRun('npm', ['pack', '--silent', '--pack-destination', dist], { cwd: folder });
}
