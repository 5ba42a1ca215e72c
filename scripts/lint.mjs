// npm run lint: every rule that a machine can check. --fix repairs what can be repaired.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkToolchain, installModules, root, run, say } from './steps.mjs';

const fix = process.argv.includes('--fix');

checkToolchain();
await installModules();
const failed = [
  await check('Rust format', 'cargo', ['fmt', '--all', ...(fix ? [] : ['--check'])]),
  await check('Rust lints', 'cargo', ['clippy', '--workspace', '--all-targets', '--locked', '--', '-D', 'warnings']),
  await check('JavaScript lints', join(root, 'node_modules/.bin/eslint'), ['--max-warnings', '0', ...(fix ? ['--fix'] : []), '.']),
  lockfileNamesNoHost(),
].filter(Boolean);

if (failed.length > 0) {
  console.error(`\nFailed: ${failed.join(', ')}`);
  process.exitCode = 1;
} else {
  say('All rules hold');
}

async function check(name, command, args) {
  say(name);
  return (await run(command, args)) === 0 ? undefined : name;
}

/** A lockfile that was written without this repository's .npmrc has the name of its registry, and installs from there only. */
function lockfileNamesNoHost() {
  const name = 'package-lock.json names a host';
  const found = /"resolved": "\w+:\/\/[^"]*"/.exec(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  if (!found) return undefined;
  console.error(`${name}: ${found[0]}`);
  return name;
}
