// What the trials of packages share: an expectation, and where to find a package and Node. Knows no trial.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../steps.mjs';

/** Fails with what was seen. */
export function expect(what, seen, pattern) {
  if (!pattern.test(seen)) throw new Error(`${what}: expected ${pattern}, got:\n${seen}`);
}

/** What `hostler --version` prints, also that of a candidate for a release (0.2.0-rc.1). */
export const VERSION = /^hostler \d+\.\d+\.\d+(?:-[\w.]+)?\n$/;

/** The archive for a target, of any version, without the one that has the debug information. */
export function archiveOf(target) {
  return new RegExp(`^hostler-\\d[^-]*(?:-[\\w.]+)?-${target}\\.tar\\.gz$`);
}

/** The reason why a trial cannot run on this machine. */
export class Skipped extends Error {}

/** The one packed file with such a name. */
export function only(dist, pattern) {
  const found = existsSync(dist) ? readdirSync(dist).filter((name) => pattern.test(name)) : [];
  if (found.length === 0) throw new Skipped(`${dist} has no ${pattern.source}`);
  if (found.length > 1) throw new Error(`${dist} has several: ${found.join(', ')}`);
  return join(dist, found[0]);
}

/** Node 22, which scripts/tools.mjs unpacks, runs with an old glibc. */
export function theNode() {
  const node = process.env.TEST_NODE_22 ?? join(root, 'target/tools/node22/bin/node');
  return existsSync(node) ? node : process.execPath;
}
