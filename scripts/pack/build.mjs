// Builds the program for one target with Zig as C compiler and linker, and separates its debug information. Knows no package format.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { makeZig } from '../tools.mjs';
import { mustRun, root, say, stop } from '../steps.mjs';

const PROGRAM = ['-p', 'hostler', '--bin', 'hostler', '--locked'];

/** Builds the program. Resolves with its path. With `fromSource` the standard library is compiled, too, for a target that rustup cannot add. */
export async function build(target, { profile, fromSource }) {
  const zig = await makeZig();
  if (zig.reason) stop(`Zig links the program for ${target.name}, and could not be installed: ${zig.reason}`);
  if (!fromSource) await addStandardLibrary(target);
  say(`Building hostler for ${target.name}, profile ${profile}`);
  const folder = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
  const env = { ...process.env, PATH: `${zig.folder}${delimiter}${process.env.PATH}`, ...(fromSource ? { RUSTC_BOOTSTRAP: '1' } : {}) };
  const std = fromSource ? ['-Zbuild-std=std,panic_unwind'] : [];
  const triple = target.glibc ? `${target.triple}.${target.glibc}` : target.triple;
  await mustRun('cargo-zigbuild', ['zigbuild', ...PROGRAM, '--profile', profile, '--target', triple, ...std], { env });
  return join(folder, target.triple, folderOf(profile), 'hostler');
}

/** Writes the program without symbols to `into`, and the symbols and line numbers beside it (`.debug`). Returns both paths. */
export async function strip(program, into) {
  const debug = `${into}.debug`;
  await objcopy('--only-keep-debug', program, debug);
  await objcopy('--strip-all', `--add-gnu-debuglink=${debug}`, program, into);
  chmodSync(debug, 0o644);
  chmodSync(into, 0o755);
  return { program: into, debug };
}

/** Rust's own objcopy reads programs for every processor. */
async function objcopy(...args) {
  const sysroot = output('rustc', ['--print', 'sysroot']);
  const own = join(sysroot, 'lib/rustlib', hostTriple(), 'bin/rust-objcopy');
  const env = { ...process.env, LD_LIBRARY_PATH: join(sysroot, 'lib') };
  await mustRun(existsSync(own) ? own : 'objcopy', args, { env });
}

/** rustup adds it. A compiler without rustup has it, or it says so. */
async function addStandardLibrary({ name, triple }) {
  const sysroot = output('rustc', ['--print', 'sysroot']);
  const library = join(sysroot, 'lib/rustlib', triple, 'lib');
  const isThere = () => existsSync(library) && readdirSync(library).some((file) => file.startsWith('libstd-'));
  if (isThere()) return;
  // Without a network rustup tries again and again.
  spawnSync('rustup', ['target', 'add', triple], { stdio: 'inherit', timeout: 120_000 });
  if (isThere()) return;
  stop(
    `Rust's standard library for ${name} (${triple}) is not installed, and "rustup target add ${triple}" could not install it.\n` +
      'Where rustup has no network, compile it: install the source of the standard library for exactly this compiler (the component rust-src,\n' +
      'or the package rust-src of the system) and give --std-from-source.',
  );
}

/** The folder of a profile inside the target directory. */
function folderOf(profile) {
  return profile === 'dev' ? 'debug' : profile;
}

function hostTriple() {
  return /^host: (.*)$/m.exec(output('rustc', ['-vV']))[1];
}

function output(command, args) {
  const { status, stdout, error } = spawnSync(command, args, { encoding: 'utf8', cwd: root });
  if (status !== 0) stop(`"${command} ${args.join(' ')}" failed: ${error?.message ?? `exit code ${status}`}`);
  return stdout.trim();
}
