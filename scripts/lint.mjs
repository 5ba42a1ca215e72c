// npm run lint: every rule that a machine can check. --fix repairs what can be repaired. --advisories also asks the advisory database.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lintPackaging } from './lint/packaging.mjs';
import { checkToolchain, installModules, root, run, say } from './steps.mjs';
import { makeCargoDeny } from './tools.mjs';
import { inFolder, writeDependent } from './vendor.mjs';

const fix = process.argv.includes('--fix');
// The database is a Git repository. A machine that reaches only package registries cannot fetch it.
const advisories = process.argv.includes('--advisories');
/** The fuzz targets are a workspace of their own. Without its default feature it needs neither libFuzzer nor nightly. */
const FUZZ = ['clippy', '--manifest-path', 'fuzz/Cargo.toml', '--no-default-features', '--locked', '--', '-D', 'warnings'];

checkToolchain();
await installModules();
const skipped = [];
const failed = [
  await check('Rust format', 'cargo', ['fmt', '--all', ...(fix ? [] : ['--check'])]),
  await check('Rust lints', 'cargo', ['clippy', '--workspace', '--all-targets', '--locked', '--', '-D', 'warnings']),
  await check('Fuzz targets', 'cargo', FUZZ),
  await checkDependencies(),
  ...(advisories ? [await checkVendored()] : []),
  await check('JavaScript lints', join(root, 'node_modules/.bin/eslint'), ['--max-warnings', '0', ...(fix ? ['--fix'] : []), '.']),
  lockfileNamesNoHost(),
  ...(await lintPackaging({ check, missing })),
].filter(Boolean);

if (failed.length > 0) {
  console.error(`\nFailed: ${failed.join(', ')}`);
  process.exitCode = 1;
} else {
  say(skipped.length === 0 ? 'All rules hold' : `All rules that were checked hold. SKIPPED: ${skipped.join(', ')}`);
}

async function check(name, command, args) {
  say(name);
  return (await run(command, args)) === 0 ? undefined : name;
}

/** Licences, banned crates and sources of all dependencies, by the rules in `deny.toml`. */
async function checkDependencies() {
  const { path, reason } = await makeCargoDeny();
  const name = 'Dependencies (cargo deny)';
  if (!path) return missing(name, reason);
  const checks = ['bans', 'licenses', 'sources', ...(advisories ? ['advisories'] : [])];
  return check(name, path, ['--locked', '--log-level', 'error', 'check', '--hide-inclusion-graph', ...checks]);
}

/** Advisories for the crate in `vendor/`. cargo-deny does not look up crates that come from a folder, so it gets a package with the published one. */
async function checkVendored() {
  const { path, reason } = await makeCargoDeny();
  const name = 'Advisories for vendor/h2 (cargo deny)';
  if (!path) return missing(name, reason);
  return inFolder((folder) => check(name, path, ['--manifest-path', writeDependent(folder), '--log-level', 'error', 'check', 'advisories']));
}

/** A check whose program is not there. In CI it fails, because a skip would look like a pass there. */
function missing(name, reason) {
  console.warn(`\n!!! ${process.env.CI ? 'MISSING' : 'SKIPPED'}: ${name}: ${reason}`);
  if (process.env.CI) return name;
  skipped.push(name);
  return undefined;
}

/** A lockfile that was written without this repository's .npmrc has the name of its registry, and installs from there only. */
function lockfileNamesNoHost() {
  const name = 'package-lock.json names a host';
  const found = /"resolved": "\w+:\/\/[^"]*"/.exec(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  if (!found) return undefined;
  console.error(`${name}: ${found[0]}`);
  return name;
}
