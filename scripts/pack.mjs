// npm run pack: builds Hostler for each target and packs it: npm packages, tar archives, Debian packages, checksums.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build, strip } from './pack/build.mjs';
import { packDeb } from './pack/deb.mjs';
import { packLauncher, packPlatform } from './pack/npm.mjs';
import { TARGETS, targetNamed } from './pack/targets.mjs';
import { layOut, makeExtras, packTar, runsHere } from './pack/tree.mjs';
import { has, root, say, stop } from './steps.mjs';

const NAMES = TARGETS.map(({ name }) => name).join(', ');
const USAGE = `Usage: npm run pack -- [OPTIONS]

  --target NAME          ${NAMES}; can be repeated [default: all]
  --binary PATH          pack this program in place of building one; needs one --target
  --profile NAME         cargo profile [default: release]
  --only npm|tar|deb     make only these packages; can be repeated
  --out FOLDER           where the packages go [default: target/dist]
  --std-from-source      compile Rust's standard library, too, where rustup cannot add the target`;

const options = read();
const version = /^version = "(.*)"$/m.exec(readFileSync(join(root, 'Cargo.toml'), 'utf8'))[1];
const dist = resolve(options.out ?? join(root, 'target/dist'));
const stage = join(dist, '.stage');
const extras = join(stage, 'extras');
mkdirSync(dist, { recursive: true });

const made = [];
for (const target of options.targets) {
  const built = options.binary ?? (await build(target, { profile: options.profile, fromSource: options.fromSource }));
  const folder = join(stage, target.name);
  mkdirSync(folder, { recursive: true });
  made.push({ target, ...(await strip(resolve(built), join(folder, 'hostler'))) });
}
const speaker = made.find(({ program }) => runsHere(program));
if (!speaker) stop('The man pages and completions are written by the program itself, and no packed program runs on this machine. Pack a target of this machine, too.');
makeExtras(speaker.program, extras);

for (const { target, program, debug } of made) {
  say(`Packing ${target.name}`);
  const given = { program, debug: options.binary ? undefined : debug, extras, version, stage, dist };
  if (options.wants('npm')) await packPlatform(target, given);
  if (options.wants('tar')) await packTar(target, given);
  if (options.wants('deb') && target.debian) await packDebian(target, given);
}
if (options.wants('npm')) await packLauncher({ extras, version, stage, dist });
rmSync(stage, { recursive: true });
writeChecksums();

async function packDebian(target, given) {
  if (!has('dpkg-deb')) return console.warn('!!! SKIPPED: the Debian package needs dpkg-deb');
  const into = (folder) => layOut(folder, { ...given, zsh: 'share/zsh/vendor-completions/_hostler' });
  return packDeb(target, { ...given, layOut: into });
}

function writeChecksums() {
  const files = readdirSync(dist).filter((name) => /\.(tgz|tar\.gz|deb)$/.test(name)).sort();
  const lines = files.map((name) => `${createHash('sha256').update(readFileSync(join(dist, name))).digest('hex')}  ${name}\n`);
  writeFileSync(join(dist, 'SHA256SUMS'), lines.join(''));
  console.log(`\n${dist}\n${lines.join('')}`);
}

function read() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        target: { type: 'string', multiple: true },
        binary: { type: 'string' },
        profile: { type: 'string', default: 'release' },
        only: { type: 'string', multiple: true },
        out: { type: 'string' },
        'std-from-source': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    stop(`${error.message}\n\n${USAGE}`);
  }
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const targets = values.target?.map((name) => targetNamed(name) ?? stop(`--target ${name}: there is no such target; the targets are ${NAMES}`)) ?? TARGETS;
  const kinds = values.only?.map((kind) => (['npm', 'tar', 'deb'].includes(kind) ? kind : stop(`--only ${kind}: give npm, tar or deb`)));
  if (values.binary && targets.length !== 1) stop(`--binary needs one --target: ${NAMES}`);
  return { targets, binary: values.binary, profile: values.profile, out: values.out, fromSource: values['std-from-source'], wants: (kind) => !kinds || kinds.includes(kind) };
}
