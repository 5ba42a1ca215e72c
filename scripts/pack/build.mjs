// Builds the program for one target with Zig as C compiler and linker, and separates its debug information. Knows no package format.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
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
  const env = { ...process.env, PATH: `${zig.folder}${delimiter}${process.env.PATH}` };
  const profiled = ['--profile', profile];
  if (target.triple === hostTriple() && !fromSource) {
    // Without --target, because that would give the functions other names than in the profile of the build (pgo/).
    const into = join(folder, 'zig');
    await mustRun('cargo', ['build', ...PROGRAM, ...profiled, '--target-dir', into], { env: { ...env, ...zigFor(target, zig, folder) } });
    return join(into, folderOf(profile), 'hostler');
  }
  // The profile of the build is for the triple that it was made with (pgo/README.md).
  Object.assign(env, { HOSTLER_PGO: 'off', ...(fromSource ? { RUSTC_BOOTSTRAP: '1' } : {}) });
  const std = fromSource ? ['-Zbuild-std=std,panic_unwind'] : [];
  const triple = target.glibc ? `${target.triple}.${target.glibc}` : target.triple;
  await mustRun('cargo-zigbuild', ['zigbuild', ...PROGRAM, ...profiled, '--target', triple, ...std], { env });
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

/** Environment variables with which cargo compiles and links for its own system with Zig, against an old glibc. */
function zigFor(target, zig, folder) {
  const scripts = join(folder, 'zig', 'tools');
  mkdirSync(scripts, { recursive: true });
  const [cpu] = target.triple.split('-');
  const of = (tool, flags) => {
    const path = join(scripts, `${tool}-${target.name}`);
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, `#!/bin/sh\nexec "${join(zig.folder, 'cargo-zigbuild')}" zig ${tool} -- ${flags} "$@"\n`, { mode: 0o755 });
    renameSync(draft, path);
    return path;
  };
  const system = `-target ${cpu}-linux-gnu.${target.glibc}`;
  const variable = target.triple.replaceAll('-', '_');
  const cc = of('cc', system);
  return {
    [`CARGO_TARGET_${variable.toUpperCase()}_LINKER`]: cc,
    [`CC_${variable}`]: cc,
    [`CXX_${variable}`]: of('c++', system),
    [`AR_${variable}`]: of('ar', ''),
  };
}

/** The folder of a profile inside the target directory. */
function folderOf(profile) {
  return profile === 'dev' ? 'debug' : profile;
}

export function hostTriple() {
  return /^host: (.*)$/m.exec(output('rustc', ['-vV']))[1];
}

function output(command, args) {
  const { status, stdout, error } = spawnSync(command, args, { encoding: 'utf8', cwd: root });
  if (status !== 0) stop(`"${command} ${args.join(' ')}" failed: ${error?.message ?? `exit code ${status}`}`);
  return stdout.trim();
}
