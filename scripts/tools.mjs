// Programs written in Go that the tests call: builds them, and says in the environment where they are. Knows no test.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { has, root, run, say } from './steps.mjs';

/** What `tools/go.mod` names; its go.sum holds them, and all they are made of, to one version. */
const PROGRAMS = [
  { command: 'nats-server', variable: 'HOSTLER_NATS_SERVER', why: 'routes that register themselves' },
  { command: 'h2spec', variable: 'HOSTLER_H2SPEC', why: 'conformance of HTTP/2' },
];
/** Below `target`, where the Rust tests find them without a variable too. */
const FOLDER = join(root, 'target', 'tools');
/** A module proxy that does not answer must not hold up the tests for ever. */
const PATIENCE = 10 * 60_000;

/** Builds what no variable names yet; what is missing in the end is returned, and has been said aloud. */
export async function buildGoPrograms() {
  const wanted = PROGRAMS.filter(({ variable }) => !process.env[variable]);
  if (wanted.length === 0) return [];
  const reason = has('go') ? await build() : 'there is no Go on this machine: https://go.dev/dl';
  if (reason) {
    for (const { command, variable, why } of wanted) {
      console.warn(`\n!!! MISSING: ${command} (${why}): ${reason}. The tests that need it are SKIPPED. ${variable} can name one.`);
    }
    return wanted;
  }
  for (const { command, variable } of wanted) process.env[variable] = join(FOLDER, command);
  return [];
}

/** Nothing, or why not. Go's own cache makes it a matter of seconds from the second time on. */
async function build() {
  say('Building the Go programs that tests call');
  mkdirSync(FOLDER, { recursive: true });
  const code = await run('go', ['build', '-o', `${FOLDER}/`, 'tool'], { cwd: join(root, 'scripts/tools'), timeout: PATIENCE });
  return code === 0 ? undefined : `"go build" failed (exit code ${code})`;
}

// By itself, for a test that is run alone: node scripts/tools.mjs
if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await buildGoPrograms()).length;
