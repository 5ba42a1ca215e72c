// The packages: made from the program of the tests, installed into an empty folder without a network, and run.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually, freePort } from '@hostler/testkit';
import { debianVersion } from './pack/deb.mjs';
import { packPlatform } from './pack/npm.mjs';
import { TARGETS } from './pack/targets.mjs';
import { has, root } from './steps.mjs';
import { VERSION } from './try/steps.mjs';

const { candidates, missing } = createRequire(import.meta.url)('../packaging/npm/lib/platform.js');
const PROGRAM = join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug', 'hostler');
const TARGET = `linux-${process.arch}-gnu`;
/** With this Node the launcher becomes the program. */
const NODE_22 = process.env.TEST_NODE_22 ?? join(root, 'target/tools/node22/bin/node');
const APP = "require('http').createServer((request, response) => response.end('served by ' + process.pid)).listen(3000);";

/** Runs a program as process 1 of a container. */
const CONTAINER = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc'];
const hasContainers = spawnSync('unshare', [...CONTAINER, 'true']).status === 0;

/** What GitHub sets where it builds a release. */
const BUILT_BY_GITHUB = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'example/hostler' };

const started = [];
let folder, dist, app;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hostler-pack-'));
  dist = join(folder, 'dist');
  app = join(folder, 'app');
  // The strictest umask that is usual: a test below looks at the modes of the packed files.
  must('sh', ['-c', 'umask 077; exec "$@"', 'sh', process.execPath, 'scripts/pack.mjs', '--target', TARGET, '--binary', PROGRAM, '--out', dist], root, BUILT_BY_GITHUB);
  await mkdir(app);
  await writeFile(join(app, 'server.js'), APP);
  await install(app, []);
});
after(async () => {
  // SIGTERM, because npx and the launcher pass it on.
  for (const child of started) child.kill('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

test('npx hostler prints its version from the installed packages', () => {
  const { stdout } = must('npx', ['--offline', 'hostler', '--version'], app);
  assert.match(stdout, VERSION);
});

test('npx hostler serves an app, and Ctrl-C ends it', async () => {
  // npm passes SIGTERM only to the shell that it starts, so a terminal's signal to the whole process group is what ends all.
  const { child, address } = await serve(['npx', '--offline', 'hostler'], { detached: true });
  process.kill(-child.pid, 'SIGINT');
  await once(child, 'exit');
  await eventually('the end of Hostler', () => fetch(address).then(() => false, () => true));
});

describe('the installed command', () => {
  const ways = [
    { name: 'Node 20, as the parent of the program', command: () => [process.execPath, 'node_modules/hostler/bin/hostler.js'] },
    { name: 'Node 22, which becomes the program', command: () => [NODE_22, 'node_modules/hostler/bin/hostler.js'], becomes: true, skip: !existsSync(NODE_22) },
  ];
  for (const { name, command, becomes, skip } of ways) {
    test(`serves an app, and ends with exit code 0 after SIGTERM: ${name}`, { skip }, async () => {
      const { child, address } = await serve(command());
      const answer = await fetch(address);
      assert.match(await answer.text(), /^served by \d+$/);
      if (becomes) assert.equal(await readFile(`/proc/${child.pid}/comm`, 'utf8'), 'hostler\n');
      child.kill('SIGTERM');
      assert.deepEqual(await once(child, 'exit'), [0, null]);
    });

    test(`ends with the program's own exit code: ${name}`, { skip }, () => {
      const [program, ...args] = command();
      const { status, stderr } = spawnSync(program, [...args, 'check', '-c', 'absent.toml'], { cwd: app, encoding: 'utf8' });
      assert.equal(status, 2, stderr);
      assert.match(stderr, /absent\.toml/);
    });
  }

  for (const { name, command, skip } of ways) {
    test(`names the program to start if systemd passes sockets: ${name}`, { skip }, () => {
      // As systemd does it: the variable has the id of the process that it starts.
      const activated = ['-c', 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"', 'sh', ...command(), '--version'];
      const { status, stdout, stderr } = spawnSync('sh', activated, { cwd: app, encoding: 'utf8' });
      assert.deepEqual([status, stdout], [1, ''], stderr);
      const program = join(app, 'node_modules/@hostler', TARGET, 'bin/hostler');
      assert.match(stderr, /LISTEN_FDS/);
      assert.ok(stderr.includes(`ExecStart=${program} start\n`), stderr);
    });
  }

  for (const { name, command, becomes = false, skip } of ways) {
    test(`says before the start if systemd will not hear the program: ${name}`, { skip }, () => {
      // As systemd does it for the main process of a service of Type=notify.
      const notified = ['-c', 'export SYSTEMD_EXEC_PID=$$ NOTIFY_SOCKET=/run/systemd/notify; exec "$@"', 'sh', ...command(), '--version'];
      const { status, stdout, stderr } = spawnSync('sh', notified, { cwd: app, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
      assert.match(stdout, /^hostler \d/);
      const program = join(app, 'node_modules/@hostler', TARGET, 'bin/hostler');
      assert.equal(stderr.includes('NotifyAccess=all') && stderr.includes(`ExecStart=${program} start\n`), !becomes, stderr);
    });
  }

  test('ends by the signal that ended the program, with Node 20', async () => {
    const { child } = await serve([process.execPath, 'node_modules/hostler/bin/hostler.js']);
    const { stdout } = must('ps', ['-o', 'pid=', '--ppid', String(child.pid)], app);
    process.kill(Number(stdout), 'SIGKILL');
    assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL']);
  });
});

test('as process 1 of a container, with Node 20, the launcher says by its exit code that the program was killed', { skip: !hasContainers }, async () => {
  const program = join(folder, 'is-killed');
  await writeFile(program, '#!/bin/sh\nkill -KILL $$\n', { mode: 0o755 });
  const [launcher, path] = [join(root, 'packaging/npm/lib/follow.js'), program].map((text) => JSON.stringify(text));
  const { status, stderr } = spawnSync('unshare', [...CONTAINER, process.execPath, '-e', `require(${launcher}).follow(${path}, [])`], { encoding: 'utf8' });
  assert.equal(status, 128 + 9, stderr);
});

test('without the package of the platform the launcher says what to install', async () => {
  const bare = join(folder, 'bare');
  await mkdir(bare);
  await install(bare, ['--omit=optional']);
  const { status, stderr } = spawnSync('npx', ['--offline', 'hostler', '--version'], { cwd: bare, encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`the package @hostler/${TARGET} is not installed`));
  assert.match(stderr, /--omit=optional/);
  assert.doesNotMatch(stderr, /at .*\.js:\d+/);
});

test('a program that may not be executed is named, and not called missing', async () => {
  const program = join(app, 'node_modules/@hostler', TARGET, 'bin/hostler');
  await chmod(program, 0o644);
  try {
    const { status, stderr } = spawnSync(process.execPath, ['node_modules/hostler/bin/hostler.js', '--version'], { cwd: app, encoding: 'utf8' });
    assert.equal(status, 1);
    assert.ok(stderr.startsWith(`hostler: ${program} may not be executed.\n`), stderr);
    assert.doesNotMatch(stderr, /not installed/);
  } finally {
    await chmod(program, 0o755);
  }
});

test('with pnpm, hostler upgrade finds the version that is installed then', async () => {
  // The folders of pnpm: the version is in their names, and a link leads to the newest one.
  const modules = join(folder, 'pnpm/node_modules');
  const versions = ['0.1.0', '0.2.0'].map((version) => join(modules, `.pnpm/hostler@${version}/node_modules`));
  for (const version of versions) {
    await cp(join(root, 'packaging/npm'), join(version, 'hostler'), { recursive: true });
    await mkdir(join(version, '@hostler', TARGET, 'bin'), { recursive: true });
    await writeFile(join(version, '@hostler', TARGET, 'bin/hostler'), '#!/bin/sh\necho "$0"\n', { mode: 0o755 });
  }
  const [old, newest] = versions.map((version) => join(version, '@hostler', TARGET, 'bin/hostler'));
  await symlink(join(versions[0], 'hostler'), join(modules, 'hostler'));
  const path = must(process.execPath, ['node_modules/hostler/bin/hostler.js'], join(folder, 'pnpm')).stdout.trim();
  assert.equal(await realpath(path), await realpath(old));
  await rm(join(modules, 'hostler'));
  await symlink(join(versions[1], 'hostler'), join(modules, 'hostler'));
  assert.equal(await realpath(path), await realpath(newest));
});

test('a machine gets the packages that run there, the best first', () => {
  const x64 = { platform: 'linux', arch: 'x64' };
  assert.deepEqual(candidates({ ...x64, glibc: '2.36' }), ['@hostler/linux-x64-gnu', '@hostler/linux-x64-musl']);
  assert.deepEqual(candidates({ ...x64, glibc: '2.17' }), ['@hostler/linux-x64-gnu', '@hostler/linux-x64-musl']);
  assert.deepEqual(candidates({ ...x64, glibc: '2.12' }), ['@hostler/linux-x64-musl'], 'an older glibc');
  assert.deepEqual(candidates({ ...x64, arch: 'arm64' }), ['@hostler/linux-arm64-musl'], 'musl');
  assert.deepEqual(candidates({ platform: 'darwin', arch: 'arm64' }), []);
  assert.match(missing({ platform: 'darwin', arch: 'arm64' }), /there is no program for darwin arm64/);
});

test('the launcher depends on a package for each platform, and only the right one is installed', async () => {
  const { optionalDependencies, version, scripts } = JSON.parse(await readFile(join(app, 'node_modules/hostler/package.json'), 'utf8'));
  const names = ['arm64-gnu', 'arm64-musl', 'x64-gnu', 'x64-musl'].map((name) => [`@hostler/linux-${name}`, version]);
  assert.deepEqual(Object.entries(optionalDependencies).sort(), names);
  assert.equal(scripts, undefined, 'no script runs during the installation');
  assert.deepEqual(await readdir(join(app, 'node_modules/@hostler')), [TARGET]);
  const { os, cpu, libc } = JSON.parse(await readFile(join(app, 'node_modules/@hostler', TARGET, 'package.json'), 'utf8'));
  assert.deepEqual({ os, cpu, libc }, { os: ['linux'], cpu: [process.arch], libc: ['glibc'] });
});

test('on each system npm installs the package of that system only, and the launcher finds it there', async () => {
  // A small stand-in for the program: the packages of the other targets are as npm sees them.
  const others = join(folder, 'others');
  await mkdir(others);
  const standIn = join(others, 'program');
  await writeFile(standIn, '#!/bin/sh\necho "$0"\n', { mode: 0o755 });
  const { version } = JSON.parse(await readFile(join(app, 'node_modules/hostler/package.json'), 'utf8'));
  for (const target of TARGETS) await packPlatform(target, { program: standIn, version, stage: join(others, 'stage'), dist: others });
  const [launcher] = (await readdir(dist)).filter((name) => /^hostler-\d.*\.tgz$/.test(name));
  const optionalDependencies = Object.fromEntries(TARGETS.map(({ name }) => [`@hostler/${name}`, `file:${join(others, `hostler-${name}-${version}.tgz`)}`]));
  const project = JSON.stringify({ private: true, dependencies: { hostler: `file:${join(dist, launcher)}` }, optionalDependencies });
  for (const { name, cpu, libc } of TARGETS) {
    const system = join(folder, `system-${name}`);
    await mkdir(system);
    await writeFile(join(system, 'package.json'), project);
    must('npm', ['install', '--offline', '--no-audit', '--no-fund', '--os=linux', `--cpu=${cpu}`, `--libc=${libc}`], system);
    assert.deepEqual(await readdir(join(system, 'node_modules/@hostler')), [name]);
    const glibc = libc === 'glibc' ? '2.31' : undefined;
    const [found] = candidates({ platform: 'linux', arch: cpu, glibc }).map((one) => join(system, 'node_modules', one, 'bin/hostler')).filter(existsSync);
    assert.equal(must(found, [], system).stdout, `${found}\n`);
  }
});

test('a release publishes each package that is not private, with the version of the program', async () => {
  const version = /^version = "(.*)"$/m.exec(await readFile(join(root, 'Cargo.toml'), 'utf8'))[1];
  const workflow = await readFile(join(root, '.github/workflows/release.yml'), 'utf8');
  const packages = [];
  for (const name of await readdir(join(root, 'packages'))) {
    const about = JSON.parse(await readFile(join(root, 'packages', name, 'package.json'), 'utf8'));
    if (about.private) continue;
    packages.push(about.name);
    assert.equal(about.version, version, about.name);
    assert.ok(workflow.includes(`npm pack --workspace ${about.name} --pack-destination dist`), about.name);
    assert.ok(workflow.includes(`"repository.url=git+$GITHUB_SERVER_URL/$GITHUB_REPOSITORY.git" --workspace ${about.name}\n`), about.name);
    // npm writes @hostler/render as hostler-render-0.1.0.tgz, and takes dist/NAME without ./ for a repository on GitHub.
    assert.match(workflow, new RegExp(`for package in (?:\\./dist/\\S+ )*\\./dist/${about.name.replace('@', '').replace('/', '-')}-\\*\\.tgz[ ;]`), about.name);
  }
  assert.deepEqual(packages, ['@hostler/render']);
});

test('a candidate for a release is not what npm and GitHub call the latest version', async () => {
  const workflow = await readFile(join(root, '.github/workflows/release.yml'), 'utf8');
  assert.match(workflow, / npm publish "\$package" --tag "\$tag" /);
  assert.match(workflow, / gh release create "\$GITHUB_REF_NAME" dist\/\* "--prerelease=\$prerelease" /);
  const choices = workflow.match(/case "\$GITHUB_REF_NAME" in .* esac$/gm).join('\n');
  for (const [name, chosen] of [['v0.2.0', 'latest false'], ['v0.2.0-rc.1', 'next true']]) {
    const { stdout } = spawnSync('sh', ['-c', `${choices}\necho $tag $prerelease`], { env: { ...process.env, GITHUB_REF_NAME: name }, encoding: 'utf8' });
    assert.equal(stdout, `${chosen}\n`, name);
  }
});

test('the notes of a release are not longer than GitHub takes', async () => {
  const workflow = await readFile(join(root, '.github/workflows/release.yml'), 'utf8');
  const [, notes, file] = /gh release create .* (--notes|--notes-file) (\S+)$/m.exec(workflow);
  const length = notes === '--notes' ? 0 : (await readFile(join(root, file), 'utf8')).length;
  assert.ok(length <= 125_000, `${file} has ${length} characters`);
});

test('each npm package names the repository that built it, without which npm refuses the proof of provenance', async () => {
  for (const name of ['hostler', `@hostler/${TARGET}`]) {
    const { repository } = JSON.parse(await readFile(join(app, 'node_modules', name, 'package.json'), 'utf8'));
    assert.deepEqual(repository, { type: 'git', url: 'git+https://github.com/example/hostler.git' }, name);
  }
});

test('the tar archive and the npm package have man pages and completions that work', async () => {
  const unpacked = join(folder, 'usr-local');
  await mkdir(unpacked);
  const [archive] = (await readdir(dist)).filter((name) => name.endsWith('.tar.gz'));
  must('tar', ['--extract', `--file=${join(dist, archive)}`, `--directory=${unpacked}`, '--strip-components=1'], folder);
  const bash = 'source share/bash-completion/completions/hostler; COMP_WORDS=(hostler res); COMP_CWORD=1; _hostler hostler res hostler; echo "${COMPREPLY[@]}"';
  assert.equal(must('bash', ['-c', bash], unpacked).stdout.trim(), 'restart resume');
  const pages = await readdir(join(unpacked, 'share/man/man1'));
  for (const page of ['hostler.1.gz', 'hostler-run.1.gz', 'hostler-start.1.gz']) assert.ok(pages.includes(page), `${page} in ${pages}`);
  assert.deepEqual(pages.filter((page) => page.includes('__')), [], 'no page of a hidden command');
  assert.deepEqual((await readdir(join(app, 'node_modules/hostler/man'))).map((page) => `${page}.gz`).sort(), pages.sort());
  const { man } = JSON.parse(await readFile(join(app, 'node_modules/hostler/package.json'), 'utf8'));
  assert.deepEqual(man.map((page) => `${page}.gz`), pages.map((page) => `man/${page}`), 'npm links these pages, and takes no folder');
  assert.ok((await stat(join(app, 'node_modules/hostler/completions/_hostler'))).size > 1000);
  await hasPages(join(unpacked, 'share/doc/hostler'));
  await hasPages(join(app, 'node_modules/hostler'));
});

test('every user can read the files of the packages, also if they were packed with a strict umask', async () => {
  const named = (ending) => readdir(dist).then((files) => join(dist, files.find((file) => file.endsWith(ending))));
  const listed = [must('tar', ['--list', '--verbose', `--file=${await named('.tar.gz')}`], folder).stdout];
  if (has('dpkg-deb')) listed.push(must('dpkg-deb', ['--contents', await named('.deb')], folder).stdout);
  for (const line of listed.join('').trim().split('\n')) assert.match(line, /^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) /);
});

test('the Debian package has the unit, the configuration file and the program', { skip: !has('dpkg-deb') }, async () => {
  const [name] = (await readdir(dist)).filter((file) => file.endsWith('.deb'));
  const into = join(folder, 'deb');
  must('dpkg-deb', ['--raw-extract', join(dist, name), into], folder);
  assert.equal(await readFile(join(into, 'DEBIAN/conffiles'), 'utf8'), '/etc/hostler/hostler.toml\n');
  const check = must(join(into, 'usr/bin/hostler'), ['check', '-c', join(into, 'etc/hostler/hostler.toml')], folder);
  assert.match(check.stdout, /hostler\.toml/);
  must('md5sum', ['--check', '--quiet', 'DEBIAN/md5sums'], into);
  for (const script of ['postinst', 'prerm', 'postrm']) must('sh', ['-n', join(into, 'DEBIAN', script)], into);
  const unit = await readFile(join(into, 'usr/lib/systemd/system/hostler.service'), 'utf8');
  assert.match(unit, /^Type=notify$/m);
  await hasPages(join(into, 'usr/share/doc/hostler'));
});

test('for dpkg a release is newer than its candidates, so that it replaces them', { skip: !has('dpkg') }, () => {
  const ascending = ['0.1.0', '0.2.0-rc.1', '0.2.0-rc.2', '0.2.0', '0.2.1'];
  ascending.slice(1).forEach((version, index) => {
    const { status, stderr } = spawnSync('dpkg', ['--compare-versions', debianVersion(ascending[index]), 'lt', debianVersion(version)], { encoding: 'utf8' });
    assert.equal(status, 0, `${ascending[index]} < ${version} ${stderr}`);
  });
});

test('in each systemd unit, the death of one worker because no memory is left does not stop all of Hostler', async () => {
  for (const path of ['packaging/debian/hostler.service', 'docs/guide/deploys.md', 'docs/guide/from-nginx-pm2.md']) {
    assert.match(await readFile(join(root, path), 'utf8'), /^\[Service\]\n[^[]*^OOMPolicy=continue$/m, path);
  }
});

/** An operator finds the pages that advice names, and the alert rules that the guide names. */
async function hasPages(package_) {
  const advice = await readFile(join(package_, 'docs/reference/advice.md'), 'utf8');
  const named = [...new Set([...advice.matchAll(/\]\(\.\.\/([a-z]+\/[\w-]+\.md)/g)].map(([, page]) => page))];
  assert.ok(named.length > 5, named.join());
  for (const page of [...named, 'guide/logs.md', 'monitoring/hostler.rules.yml']) assert.ok(existsSync(join(package_, 'docs', page)), page);
}

test('SHA256SUMS has the checksum of each package', async () => {
  must('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], dist);
  const lines = (await readFile(join(dist, 'SHA256SUMS'), 'utf8')).trim().split('\n');
  assert.equal(lines.length, (await readdir(dist)).length - 1);
});

/** Installs the packed files, without a network. */
async function install(into, flags) {
  await writeFile(join(into, 'package.json'), '{ "private": true }');
  const files = (await readdir(dist)).filter((name) => name.endsWith('.tgz'));
  const wanted = flags.length > 0 ? files.filter((name) => !name.includes('linux')) : files;
  must('npm', ['install', '--offline', '--no-audit', '--no-fund', ...flags, ...wanted.map((name) => join(dist, name))], into);
}

/** Starts the app behind the installed Hostler, and waits until it answers. */
async function serve([program, ...args], options = {}) {
  const port = await freePort();
  const flags = ['run', '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0', '--workers', '1', '--', process.execPath, 'server.js'];
  const child = spawn(program, [...args, ...flags], { cwd: app, stdio: ['ignore', 'ignore', 'inherit'], ...options });
  started.push(child);
  const address = `http://127.0.0.1:${port}/`;
  await eventually('an answer of the app', async () => (await fetch(address)).ok);
  return { child, address };
}

function must(command, args, cwd, env = {}) {
  const done = spawnSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, npm_config_cache: join(folder, 'cache'), ...env } });
  assert.equal(done.status, 0, `${command} ${args.join(' ')}\n${done.stdout}${done.stderr}`);
  return done;
}
