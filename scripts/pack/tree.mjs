// Lays out the files that are installed beside the program, and packs them as a tar archive. Knows no system's package format.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { mustRun, root, stop } from '../steps.mjs';

const SHELLS = { bash: 'hostler.bash', zsh: '_hostler', fish: 'hostler.fish' };
/** Where each shell looks for completions, below the prefix. */
const COMPLETIONS = {
  bash: 'share/bash-completion/completions/hostler',
  zsh: 'share/zsh/site-functions/_hostler',
  fish: 'share/fish/vendor_completions.d/hostler.fish',
};

/** Lets the program write its man pages and completions. They are equal for all targets. */
export function makeExtras(program, extras) {
  rmSync(extras, { recursive: true, force: true });
  mkdirSync(join(extras, 'completions'), { recursive: true });
  ask(program, '__man', join(extras, 'man'));
  for (const [shell, file] of Object.entries(SHELLS)) writeFileSync(join(extras, 'completions', file), ask(program, 'completions', shell));
}

/** Whether this machine can run the program. */
export function runsHere(program) {
  return spawnSync(program, ['--version']).status === 0;
}

/** Fills `folder` with the program and what belongs to it, as below /usr or /usr/local. */
export function layOut(folder, { program, extras, zsh = COMPLETIONS.zsh }) {
  rmSync(folder, { recursive: true, force: true });
  const put = (from, to, mode = 0o644) => {
    const path = join(folder, to);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(from, path);
    chmodSync(path, mode);
    return path;
  };
  put(program, 'bin/hostler', 0o755);
  for (const page of readdirSync(join(extras, 'man'))) {
    const path = put(join(extras, 'man', page), `share/man/man1/${page}.gz`);
    writeFileSync(path, gzipSync(readFileSync(path), { level: 9 }));
  }
  for (const [shell, file] of Object.entries(SHELLS)) put(join(extras, 'completions', file), shell === 'zsh' ? zsh : COMPLETIONS[shell]);
  put(join(root, 'LICENSE'), 'share/doc/hostler/LICENSE');
  put(join(root, 'CHANGELOG.md'), 'share/doc/hostler/CHANGELOG.md');
  layOutDocs(join(folder, 'share/doc/hostler'));
}

/** The pages that advice, the live page and the log name, such as docs/guide/logs.md, and those that they lead to: 260 KB compressed. */
const DOCS = ['guide', 'concepts', 'reference', 'monitoring'];

/** Copies the pages below docs/ in `folder`. */
export function layOutDocs(folder) {
  for (const name of DOCS) cpSync(join(root, 'docs', name), join(folder, 'docs', name), { recursive: true });
}

/** Packs hostler-VERSION-TARGET.tar.gz, to unpack below /usr/local, and the debug information apart. */
export async function packTar(target, { program, debug, extras, version, stage, dist }) {
  const name = `hostler-${version}-${target.name}`;
  const folder = join(stage, name);
  layOut(folder, { program, extras });
  const unit = readFileSync(join(root, 'packaging/debian/hostler.service'), 'utf8').replaceAll('/usr/bin/', '/usr/local/bin/');
  writeFileSync(join(folder, 'share/doc/hostler/hostler.service'), unit);
  copyFileSync(join(root, 'packaging/debian/hostler.toml'), join(folder, 'share/doc/hostler/hostler.toml'));
  await tar(join(dist, `${name}.tar.gz`), stage, name);
  if (debug) await tar(join(dist, `${name}-debug.tar.gz`), dirname(debug), 'hostler.debug');
}

/** For GNU tar and chmod. The umask of the caller must not decide who can read the files: an unpacked folder, such as bin, changes the mode of /usr/local/bin. */
export const READABLE = 'u+rwX,go+rX,go-w';

async function tar(archive, folder, name) {
  await mustRun('tar', ['--create', '--gzip', '--owner=root:0', '--group=root:0', `--mode=${READABLE}`, '--sort=name', `--file=${archive}`, `--directory=${folder}`, name]);
}

function ask(program, ...args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 10_000_000 });
  if (status !== 0) stop(`"${program} ${args.join(' ')}" failed: ${error?.message ?? stderr}`);
  return stdout;
}
