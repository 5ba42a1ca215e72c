// Makes the app of a guide by the guide's own commands and files, in a folder below target/. Knows no framework.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { hostlerProgram } from '@hostler/testkit';

const HOME = fileURLToPath(new URL('../../../target/guides/', import.meta.url));
/** npm takes no package that is newer, so that a new release of a framework breaks no test. */
const PACKAGES_OF = '2026-11-20';

/**
 * Makes the app of a page by the blocks below some of its headings: once, and again when these blocks change. Returns the folder of
 * the app, which is the one in which the commands end.
 */
export async function makeApp(page, headings = ['Make the app'], name = page.name) {
  const blocks = headings.flatMap((heading) => page.section(heading)).filter(({ file }) => file !== 'hostler.toml');
  const folder = join(HOME, name);
  const stamp = join(folder, 'made-from');
  const made = createHash('sha256').update(JSON.stringify([PACKAGES_OF, process.version, blocks])).digest('hex');
  const known = existsSync(stamp) ? JSON.parse(await readFile(stamp, 'utf8')) : {};
  if (known.made === made) return known.app;

  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  let app = folder;
  for (const { file, language, text } of blocks) {
    if (file) await writeInto(app, file, text);
    else if (language === 'sh') app = (await runCommands(text, { cwd: app })).cwd;
  }
  await writeFile(stamp, JSON.stringify({ made, app }));
  return app;
}

export async function writeInto(folder, file, text) {
  await mkdir(dirname(join(folder, file)), { recursive: true });
  await writeFile(join(folder, file), text);
}

/**
 * Runs a shell block as a person would, and stops at the first command that fails. Returns the output, and the folder in
 * which the block ends.
 */
export async function runCommands(text, { cwd, env = {} }) {
  const child = spawn('sh', ['-e', '-c', `${text}\npwd >&3`], {
    cwd,
    env: { ...environment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const read = async (streams) => (await Promise.all(streams.map((stream) => stream.setEncoding('utf8').toArray()))).flat().join('');
  const [output, end, code] = await Promise.all([
    read([child.stdout, child.stderr]),
    read([child.stdio[3]]),
    new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve)),
  ]);
  if (code !== 0) throw new Error(`exit code ${code} of these commands in ${cwd}:\n${text}\nTheir output:\n${output}`);
  return { output, cwd: end.trim() };
}

/** The environment of a terminal: without the variables of `npm test` and of node's test runner, and without telemetry. */
function environment() {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|INIT_CWD$)/.test(name));
  return {
    ...Object.fromEntries(own),
    PATH: `${dirname(hostlerProgram())}:${process.env.PATH}`,
    CI: '1',
    npm_config_yes: 'true',
    npm_config_before: PACKAGES_OF,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_prefer_offline: 'true',
    NEXT_TELEMETRY_DISABLED: '1',
    NUXT_TELEMETRY_DISABLED: '1',
    ASTRO_TELEMETRY_DISABLED: '1',
  };
}
