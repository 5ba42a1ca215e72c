// Writes vendor/h2: the crate h2 as its authors publish it, with the changes of vendor/h2.patch. Knows no other crate.
//
// node scripts/vendor.mjs [VERSION]  writes the folder again, for another version if one is given
// node scripts/vendor.mjs --save     writes the patch, after a change in the folder
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './steps.mjs';

export const FOLDER = join(root, 'vendor/h2');
const PATCH = join(root, 'vendor/h2.patch');
/** What of the published crate is copied. Its examples and benchmarks are not. */
const PARTS = ['Cargo.toml', 'LICENSE', 'src'];
const TEXT = { encoding: 'utf8', maxBuffer: 64 << 20 };

/** The version of the crate in `vendor/h2`. */
export function version() {
  return /^name = "h2"\nversion = "(.*)"$/m.exec(readFileSync(join(FOLDER, 'Cargo.toml'), 'utf8'))[1];
}

/** Makes the folder in `target`, from the published crate and the patch. */
export async function make(target, wanted = version()) {
  await publish(target, wanted);
  // Without a repository around it, Git applies a patch to the files of the working directory.
  execFileSync('git', ['apply', '-p1', PATCH], { cwd: target, env: { ...process.env, GIT_CEILING_DIRECTORIES: dirname(target) } });
}

/** All files below `folder`, as {path: text}. */
export function files(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => join(entry.parentPath, entry.name)).sort();
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]));
}

/** Writes a package that depends on the published crate only, and returns the path of its manifest. */
export function writeDependent(folder, wanted = version()) {
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'src/lib.rs'), '');
  const manifest = join(folder, 'Cargo.toml');
  writeFileSync(manifest, `[package]\nname = "dependent"\nedition = "2024"\n\n[dependencies]\nh2 = "=${wanted}"\n\n[workspace]\n`);
  return manifest;
}

/** Runs `work` with a folder that is removed afterwards. */
export async function inFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), 'hostler-vendor-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Copies the published crate to `target`. Cargo downloads it. */
async function publish(target, wanted) {
  await inFolder((folder) => {
    const manifest = writeDependent(folder, wanted);
    const text = execFileSync('cargo', ['metadata', '--quiet', '--format-version', '1', '--manifest-path', manifest], { cwd: folder, ...TEXT });
    const source = dirname(JSON.parse(text).packages.find(({ name }) => name === 'h2').manifest_path);
    for (const part of PARTS) cpSync(join(source, part), join(target, part), { recursive: true });
  });
}

async function save() {
  await inFolder(async (folder) => {
    await publish(join(folder, 'a'), version());
    cpSync(FOLDER, join(folder, 'b'), { recursive: true });
    // Exit code 1: the folders differ.
    const { stdout } = spawnSync('git', ['diff', '--no-index', '--no-prefix', 'a', 'b'], { cwd: folder, ...TEXT });
    writeFileSync(PATCH, stdout);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [word] = process.argv.slice(2);
  if (word === '--save') {
    await save();
  } else {
    await inFolder(async (folder) => {
      await make(join(folder, 'h2'), word);
      rmSync(FOLDER, { recursive: true });
      cpSync(join(folder, 'h2'), FOLDER, { recursive: true });
    });
  }
}
