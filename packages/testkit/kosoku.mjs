// Finds kosoku, which runs the Autobahn suite's cases against a WebSocket server. Knows no server.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The path in TEST_KOSOKU, or the program that `node scripts/tools.mjs` has installed, or an installed one. Otherwise
 * undefined, and a message is printed.
 */
export function kosokuProgram() {
  const named = process.env.TEST_KOSOKU;
  if (named && !existsSync(named)) throw new Error(`TEST_KOSOKU: there is no file ${named}`);
  const found = named ?? [join(ROOT, 'target/tools/python/bin/kosoku'), 'kosoku'].find((each) => spawnSync(each, ['--help']).status === 0);
  if (!found) console.warn('!!! SKIPPED: kosoku is missing (node scripts/tools.mjs installs it)');
  return found;
}
