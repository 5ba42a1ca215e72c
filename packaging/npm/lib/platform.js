// Which package has the program for a machine, and what to say if none is installed. Starts nothing.
'use strict';

/** The oldest glibc for which the program is built: CentOS 7, Debian 8, Ubuntu 14.04. */
const OLDEST_GLIBC = [2, 17];
const ARCHITECTURES = ['x64', 'arm64'];

/** The packages with a program that runs on this machine, the best first. The program for musl needs no library, so it runs with glibc, too. */
function candidates({ platform, arch, glibc }) {
  if (platform !== 'linux' || !ARCHITECTURES.includes(arch)) return [];
  const musl = `@hostler/linux-${arch}-musl`;
  return isNewEnough(glibc) ? [`@hostler/linux-${arch}-gnu`, musl] : [musl];
}

function isNewEnough(glibc) {
  const [major, minor] = (glibc ?? '').split('.').map(Number);
  return major > OLDEST_GLIBC[0] || (major === OLDEST_GLIBC[0] && minor >= OLDEST_GLIBC[1]);
}

/** The version of glibc that Node runs with. Nothing with musl. */
function glibcVersion() {
  if (process.platform !== 'linux') return undefined;
  const { report } = process;
  report.excludeNetwork = true; // Else the report asks for the names of the peers of open connections.
  return report.getReport().header.glibcVersionRuntime;
}

/** The error if no package with a program is installed. */
function missing(machine) {
  const { platform, arch } = machine;
  const wanted = candidates(machine);
  if (wanted.length === 0) {
    return [
      `hostler: there is no program for ${platform} ${arch}.`,
      'Hostler runs on Linux, on x64 and arm64. On another system, run it in a container or a virtual machine with Linux.',
      '',
    ].join('\n');
  }
  return [
    `hostler: the package ${wanted[0]} is not installed. It has the program for this machine.`,
    'It is an optional dependency of the package hostler. Usual reasons, and what to do:',
    '  * npm ran with --omit=optional or --no-optional: install again without this flag.',
    '  * node_modules or the lock file was made on another system: delete both, and run `npm install` on this system.',
    `  * The registry or its mirror does not have the package: \`npm view ${wanted[0]}\` shows it.`,
    `Or install the program by itself: \`npm install ${wanted[0]}@${version()}\``,
    '',
  ].join('\n');
}

/** The error if the program is there and the system does not let it run. */
function notExecutable(path) {
  return [
    `hostler: ${path} may not be executed.`,
    'Usual reasons, and what to do:',
    '  * node_modules was copied without the permissions of its files: run `npm install` again, or `chmod +x` the file.',
    '  * node_modules is on a file system that is mounted with noexec: move it, or mount that without noexec.',
    '',
  ].join('\n');
}

/** The error if systemd has passed listening sockets to the launcher. */
function withoutSockets(path) {
  return [
    'hostler: systemd passes sockets to this process (LISTEN_FDS), and Node does not pass them on.',
    `Start the program itself: ExecStart=${path} start`,
    '',
  ].join('\n');
}

/** The warning if systemd waits for notifications of the launcher, which stays as the parent of the program. */
function withoutNotifications(path) {
  return [
    `hostler: with Node ${process.version} this launcher stays as the main process of the unit, and systemd takes notifications (Type=notify) of no other process.`,
    'Without them systemd stops the service after TimeoutStartSec. Use Node 22.15 or newer, set NotifyAccess=all in the unit,',
    `or start the program itself: ExecStart=${path} start`,
    '',
  ].join('\n');
}

function version() {
  return require('../package.json').version;
}

module.exports = { candidates, glibcVersion, missing, notExecutable, withoutNotifications, withoutSockets };
