// npm run try-packages: installs what `npm run pack` has made into fresh systems and empty folders, and runs it there. Builds nothing.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { has, root, say, stop } from './steps.mjs';
import { debianTrials, tarTrials } from './try/debian.mjs';
import { imageTrials } from './try/images.mjs';
import { npmTrials } from './try/npm.mjs';
import { Skipped } from './try/steps.mjs';

const KINDS = { npm: npmTrials, deb: debianTrials, tar: tarTrials, image: imageTrials };
const USAGE = `Usage: npm run try-packages -- [OPTIONS] [KIND]...

  KIND            ${Object.keys(KINDS).join(', ')} [default: all]
  --dist FOLDER   where the packages are [default: target/dist]
  --keep          keep the systems, to look into them

All but npm need root, debootstrap and curl: they make fresh Debian systems in folders, and run programs there in name spaces of their own.`;
const CPUS = { x64: { npm: 'x64', debian: 'amd64' }, arm64: { npm: 'arm64', debian: 'arm64' } };

const { values, positionals } = read();
const kinds = positionals.length > 0 ? positionals : Object.keys(KINDS);
const folder = mkdtempSync(join(tmpdir(), 'hostler-try-'));
const version = /^version = "(.*)"$/m.exec(readFileSync(join(root, 'Cargo.toml'), 'utf8'))[1];
const given = { dist: resolve(values.dist), folder, cpu: CPUS[process.arch], version };

const results = [];
for (const kind of kinds) {
  const missing = kind === 'npm' ? undefined : lacks();
  for (const { name, run } of KINDS[kind](given)) {
    say(`Trying: ${name}`);
    results.push({ name, ...(await attempt(run, missing)) });
  }
}
if (values.keep) console.log(`\nThe systems are in ${folder}`);
else rmSync(folder, { recursive: true, force: true });
report();

async function attempt(run, missing) {
  if (missing) return { outcome: 'skipped', why: missing };
  try {
    return { outcome: 'passed', why: await run() };
  } catch (error) {
    if (error instanceof Skipped) return { outcome: 'skipped', why: error.message };
    console.error(error.message);
    return { outcome: 'FAILED', why: error.message.split('\n')[0] };
  }
}

function lacks() {
  if (process.getuid() !== 0) return 'it needs root';
  return ['debootstrap', 'curl', 'unshare', 'nsenter'].filter((command) => !has(command)).map((command) => `${command} is not installed`)[0];
}

function report() {
  say('Summary');
  for (const { outcome, name, why } of results) console.log(`${outcome.padEnd(7)}  ${name}${why ? `: ${why}` : ''}`);
  const count = (wanted) => results.filter(({ outcome }) => outcome === wanted).length;
  console.log(`\n${count('passed')} passed, ${count('FAILED')} failed, ${count('skipped')} skipped`);
  process.exitCode = count('FAILED') > 0 ? 1 : 0;
}

function read() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: { dist: { type: 'string', default: join(root, 'target/dist') }, keep: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h' } },
    });
    if (parsed.values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    const unknown = parsed.positionals.find((kind) => !(kind in KINDS));
    if (unknown) stop(`${unknown}: give ${Object.keys(KINDS).join(', ')}`);
    return parsed;
  } catch (error) {
    return stop(`${error.message}\n\n${USAGE}`);
  }
}
