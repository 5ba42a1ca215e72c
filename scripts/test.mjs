// npm test: installs what the tests need, runs every test, and closes with one line that counts them. --rust or --node for one half.
import { readdirSync } from 'node:fs';

import { add, countCargo, countNode, judge, reasons } from './count.mjs';
import { buildExamples, buildProgram, checkToolchain, has, installModules, run, say, workspacesWith } from './steps.mjs';
import { makePrograms } from './tools.mjs';
import { installPackages } from './debian.mjs';

/** Programs that tests call, with their Debian packages. */
const TOOLS = [
  { command: 'chromium', package: 'chromium', why: 'pages in a real browser' },
  { command: 'ab', package: 'apache2-utils', why: 'load while workers are killed' },
  { command: 'curl', package: 'curl', why: 'slow clients' },
  { command: 'openssl', package: 'openssl', why: 'resumed TLS sessions' },
  { command: 'memcached', package: 'memcached', why: 'a cache that several Hostlers share' },
  { command: 'promtool', package: 'prometheus', why: 'metrics and alert rules' },
  { command: 'ss', package: 'iproute2', why: 'proof that a worker opens no TCP port' },
];

/** A file that does not end, for example because of an open connection, fails after 15 minutes. The packages' own scripts have the same limit. */
const NODE_TEST = ['--test', '--test-reporter=spec', '--test-timeout=900000'];

const asked = process.argv.slice(2);
const unknown = asked.filter((word) => word !== '--rust' && word !== '--node');
if (unknown.length > 0) {
  console.error(`npm test knows --rust and --node, not ${unknown.join(' ')}`);
  process.exit(2);
}
const wants = (half) => asked.length === 0 || asked.includes(half);

checkToolchain();
await installModules();
await installTools();
const missing = await makePrograms();
await buildExamples();
process.env.EXAMPLES_BUILT = '1'; // the Rust tests run the examples too, and would build them otherwise

const suites = [];
// Without --no-fail-fast cargo stops at the first failing binary, and the other tests are not counted.
if (wants('--rust')) suites.push(await suite('cargo test', countCargo, 'cargo', ['test', '--workspace', '--locked', '--no-fail-fast']));
if (wants('--node')) {
  await buildProgram(); // the tests start it
  suites.push(await suite('scripts', countNode, process.execPath, [...NODE_TEST, ...filesIn('scripts', '.test.mjs')]));
  suites.push(await suite('bench', countNode, process.execPath, [...NODE_TEST, ...filesIn('bench/test', '.test.mjs')]));
  for (const { name, folder } of workspacesWith('test')) {
    suites.push(await suite(folder, countNode, 'npm', ['test', '--silent', '--workspace', name]));
  }
}
report(suites);

/** The files one by one, because the meaning of a folder or a pattern after `--test` differs between Node versions. */
function filesIn(folder, ending) {
  return readdirSync(folder).filter((name) => name.endsWith(ending)).map((name) => `${folder}/${name}`);
}

async function suite(name, count, command, args) {
  say(`Tests: ${name}`);
  let output = '';
  const code = await run(command, args, { onOutput: (text) => (output += text) });
  return { name, ...judge(count(output), code), complaints: code === 0 ? [] : reasons(output) };
}

function report(results) {
  // Printed again at the end of a long log, where a reader looks.
  for (const { name, complaints } of results.filter(({ complaints }) => complaints.length > 0)) {
    say(`What failed in ${name}`);
    console.log(complaints.join('\n\n'));
  }
  say('Summary');
  for (const { name, passed, failed, why } of results) {
    console.log(`${failed === 0 ? 'ok    ' : 'FAILED'}  ${name}: ${passed} passed, ${failed} failed${why ? ` (${why})` : ''}`);
  }
  const { passed, failed, skipped } = results.reduce(add);
  // Printed again at the end, so that skipped tests are not taken for passed ones.
  for (const { command, why } of missing) console.warn(`!!! SKIPPED: the tests that need ${command} (${why})`);
  console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function installTools() {
  const missing = TOOLS.filter(({ command }) => !has(command));
  if (missing.length === 0) return;
  const packages = missing.map((tool) => tool.package);
  if (await installPackages(packages)) return;
  for (const { command, why } of missing) console.warn(`\n!!! MISSING: ${command} (${why}). The tests that need it cannot run. Install: ${packages.join(' ')}`);
}
