// Makes the app of a guide by the guide's own commands and files, in a folder below target/. Knows no framework.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { hostlerProgram } from '@hostler/testkit';

const HOME = fileURLToPath(new URL('../../../target/guides/', import.meta.url));
/** npm takes no package that is newer, so that a new release of a framework breaks no test. */
const PACKAGES_OF = '2026-11-20';
/** For one block. Only a command that hangs needs it. */
const TIME_LIMIT = 300_000;

/**
 * Makes the app of a page by the blocks below some of its headings: once, and again when these blocks change. Returns the folder of
 * the app, which is the one in which the commands end.
 */
export async function makeApp(page, headings = ['Make the app'], name = page.name, { except = 'hostler start' } = {}) {
  const isPart = ({ file, text }) => file !== 'hostler.toml' && !text.includes(except);
  const blocks = headings.flatMap((heading) => page.section(heading)).filter(isPart);
  const folder = join(HOME, name);
  const stamp = join(folder, 'made-from');
  const made = createHash('sha256').update(JSON.stringify([PACKAGES_OF, process.version, blocks])).digest('hex');
  const known = existsSync(stamp) ? JSON.parse(await readFile(stamp, 'utf8')) : {};
  if (known.made === made) return known.app;

  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  // Otherwise an app without this file would have that of the repository.
  await writeFile(join(HOME, 'package.json'), '{}\n');
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
 * which the block ends. The output goes to a file, because a daemon that a command leaves behind keeps it open.
 */
export async function runCommands(text, { cwd, env = {} }) {
  const scratch = await mkdtemp(join(tmpdir(), 'hostler-guide-'));
  const output = await open(join(scratch, 'output'), 'w');
  try {
    const child = spawn('sh', ['-e', '-c', `${text}\npwd > '${scratch}/end'`], {
      cwd,
      env: { ...environment(), ...env },
      stdio: ['ignore', output.fd, output.fd],
      timeout: TIME_LIMIT,
    });
    const [code, signal] = await once(child, 'exit');
    const seen = await readFile(join(scratch, 'output'), 'utf8');
    if (code !== 0) throw new Error(`${signal ?? `exit code ${code}`} of these commands in ${cwd}:\n${text}\nTheir output:\n${seen}`);
    return { output: seen, cwd: (await readFile(join(scratch, 'end'), 'utf8')).trim() };
  } finally {
    await output.close();
    await rm(scratch, { recursive: true });
  }
}

/** The environment of a terminal: without the variables of `npm test` and of node's test runner, and without telemetry. */
export function environment() {
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
