// npm run bench [-- proxy|scale|tail|overload|fair|deploys|idle|render|photos|tls|websockets|cache|memcached|lookups|any-app|many-apps ...]
// [--rounds N] [--budget MINUTES] [--quick] [--peers a,b] runs scenarios, stores their raw figures in results/*.json and renders RESULTS.md
// from them. Knows only the names of the scenarios.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { planned, within } from './lib/budget.mjs';
import { duration } from './lib/progress.mjs';
import { createSession } from './lib/session.mjs';
import { stamp } from './lib/stamp.mjs';
import { ROOT } from './lib/tools.mjs';
import { renderFolder } from './render.mjs';
import { anyApp } from './scenarios/any-app.mjs';
import { cache } from './scenarios/cache.mjs';
import { deploys } from './scenarios/deploys.mjs';
import { fair } from './scenarios/fair.mjs';
import { idle } from './scenarios/idle.mjs';
import { lookups } from './scenarios/lookups.mjs';
import { manyApps } from './scenarios/many-apps.mjs';
import { memcached } from './scenarios/memcached.mjs';
import { overload } from './scenarios/overload.mjs';
import { photos } from './scenarios/photos.mjs';
import { proxy } from './scenarios/proxy.mjs';
import { render } from './scenarios/render.mjs';
import { scale } from './scenarios/scale.mjs';
import { tail } from './scenarios/tail.mjs';
import { tls } from './scenarios/tls.mjs';
import { websockets } from './scenarios/websockets.mjs';

const SCENARIOS = { proxy, scale, tail, overload, fair, deploys, idle, render, photos, tls, websockets, cache, memcached, lookups, 'any-app': anyApp, 'many-apps': manyApps };
const USAGE = `usage: npm run bench -- [proxy] [scale] [tail] [overload] [fair] [deploys] [idle] [render] [photos] [tls] [websockets] [cache] [memcached] [lookups] [any-app] [many-apps] [--rounds N] [--budget MINUTES] [--quick] [--peers a,b]
  --budget  so many minutes for all: fewer rounds, never less than one; RESULTS.md says how many there were
  --quick   one short round, to see that everything works; writes to bench/.cache/quick, not to bench/results
  --peers   only these peers: ${Object.values(SCENARIOS).map((one) => `${one.name}: ${one.peers.join(' ')}`).join('; ')}`;

let interrupted = false;

async function main() {
  const chosen = parseCommandLine(process.argv.slice(2));
  const folder = join(ROOT, 'bench', ...(chosen.partial ? ['.cache', 'quick'] : []));
  mkdirSync(join(folder, 'results'), { recursive: true });

  const session = createSession();
  process.on('exit', session.abandon);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (interrupted) return; // one Ctrl-C arrives twice: from the terminal and from npm
      interrupted = true;
      console.error(`\n${signal}: stopping what the bench has started`);
      session.close().finally(() => process.exit(130));
    });
  }
  try {
    for (const { scenario, peers, settings } of chosen.runs) await scenario.prepare(peers, settings);
    console.error(`all parts: about ${duration(planned(chosen.runs))}`);
    const sitting = new Date().toISOString();
    for (const { scenario, peers, settings } of chosen.runs) {
      const head = { scenario: scenario.name, sitting, ...stamp(), peers, titles: scenario.titles };
      const began = performance.now();
      const result = await scenario.run(session, { peers, ...settings });
      head.took_s = Math.round((performance.now() - began) / 1000);
      const file = join(folder, 'results', `${scenario.name}.json`);
      writeFileSync(file, toJson({ ...head, ...result }));
      console.error(`wrote ${file}`);
    }
    const { file, text } = renderFolder(folder);
    console.log(text);
    console.error(`wrote ${file}`);
  } finally {
    await session.close();
  }
}

function parseCommandLine(argv) {
  let parsed;
  try {
    parsed = parseArgs({
      args: argv,
      allowPositionals: true,
      options: { rounds: { type: 'string' }, budget: { type: 'string' }, quick: { type: 'boolean' }, peers: { type: 'string' }, help: { type: 'boolean' } },
    });
  } catch (error) {
    usageError(error.message);
  }
  const { positionals, values } = parsed;
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const unknown = positionals.find((name) => !Object.hasOwn(SCENARIOS, name));
  if (unknown) usageError(`there is no scenario "${unknown}"`);
  const rounds = values.rounds === undefined ? {} : { rounds: Number(values.rounds) };
  if ('rounds' in rounds && !(Number.isInteger(rounds.rounds) && rounds.rounds > 0)) usageError('--rounds wants a number above 0');

  const budget = values.budget === undefined ? Infinity : 60 * Number(values.budget);
  if (!(budget > 0)) usageError('--budget wants a number of minutes above 0');

  const names = positionals.length > 0 ? positionals : Object.keys(SCENARIOS);
  const wanted = values.peers?.split(',');
  const runs = names.map((name) => {
    const scenario = SCENARIOS[name];
    const peers = wanted ? scenario.peers.filter((peer) => wanted.includes(peer)) : scenario.peers;
    if (peers.length === 0) usageError(`${name} has none of these peers: it has ${scenario.peers.join(', ')}`);
    return { scenario, peers, settings: { ...scenario.settings, ...(values.quick ? scenario.quick : {}), ...rounds } };
  });
  return { runs: within(budget, runs), partial: Boolean(values.quick || wanted) };
}

function usageError(message) {
  console.error(`bench: ${message}\n${USAGE}`);
  process.exit(2);
}

/** One row of raw figures per line, so that the file and its diffs are readable. */
function toJson({ rows, ...head }) {
  const lines = rows.map((row) => `    ${JSON.stringify(row)}`).join(',\n');
  return JSON.stringify(head, null, 2).replace(/\n\}$/, () => `,\n  "rows": [\n${lines}\n  ]\n}\n`);
}

main().catch((error) => {
  if (interrupted) return; // the current step had to fail
  console.error(`bench: ${error.message}`);
  process.exitCode = 1;
});
