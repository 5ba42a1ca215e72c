// The systems for which Hostler is packed, under the names that npm, Rust and Debian give them. Builds nothing.

/** The oldest glibc for which the program is linked: CentOS 7, Debian 8, Ubuntu 14.04. */
const GLIBC = '2.17';

export const TARGETS = [
  { name: 'linux-x64-gnu', triple: 'x86_64-unknown-linux-gnu', cpu: 'x64', libc: 'glibc', glibc: GLIBC, debian: 'amd64' },
  { name: 'linux-arm64-gnu', triple: 'aarch64-unknown-linux-gnu', cpu: 'arm64', libc: 'glibc', glibc: GLIBC, debian: 'arm64' },
  { name: 'linux-x64-musl', triple: 'x86_64-unknown-linux-musl', cpu: 'x64', libc: 'musl' },
  { name: 'linux-arm64-musl', triple: 'aarch64-unknown-linux-musl', cpu: 'arm64', libc: 'musl' },
];

/** The target with this name, or nothing. */
export function targetNamed(name) {
  return TARGETS.find((target) => target.name === name);
}
