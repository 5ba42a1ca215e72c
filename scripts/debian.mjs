// Installs Debian packages, for programs that a machine lacks. Does not know which ones are needed.
import { has, mustRun, say } from './steps.mjs';

/** Installs the packages. Returns false and does nothing without root, or on another system. */
export async function installPackages(packages) {
  if (process.getuid() !== 0 || !has('apt-get')) return false;
  say(`Installing ${packages.join(', ')}`);
  await mustRun('apt-get', ['update', '--quiet']);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await mustRun('apt-get', ['install', '--yes', '--no-install-recommends', ...packages], { env });
  return true;
}
