// node bench/scale.mjs [BUILD...] [--rounds N] [--seconds N] measures what many members, many routes and more threads
// cost: each variant of the configuration takes turns with the plain one. BUILD: paths of release builds of Hostler, by
// default that of this tree. Prints ratios and writes no file.
import { parseArgs } from 'node:util';

import { untilAnswers } from './lib/http.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { inRounds } from './lib/rounds.mjs';
import { createSession, freePort } from './lib/session.mjs';
import { median, pairedRatio, summaryText } from './lib/statistics.mjs';
import { buildUpstream, hostlerBinary, installPackages, needTwoCores } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { startMembers } from './peers/members.mjs';
import { stopAll } from './peers/renders.mjs';
import { LOAD_CORE, PROBE, PROXY_CORE } from './scenarios/proxy.mjs';

const PLAIN = { members: 4, routes: 10, threads: 1 };
const WARM_SECONDS = 1;
const CELLS = [
  { name: '512 members, 64 slots each, c = 50', slots: 64, connections: 50, many: { members: 512 } },
  // As many slots in all, and a queue.
  { name: '512 members, 1 slot each, c = 600', slots: 128, connections: 600, many: { members: 512, slots: 1 } },
  { name: '10,000 routes, c = 50', slots: 64, connections: 50, many: { routes: 10_000 } },
  // Threads may use all cores, so they share them with the load: only the CPU of a request is compared.
  { name: '4 threads, c = 50', slots: 64, connections: 50, many: { threads: 4 }, anywhere: true },
  { name: '4 threads, 1 slot each, c = 50', slots: 1, connections: 50, many: { threads: 4 }, anywhere: true },
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '6' }, seconds: { type: 'string', default: '4' }, cells: { type: 'string', default: '' } },
});
const builds = positionals.length > 0 ? positionals : [hostlerBinary()];
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

needTwoCores('scale', 'the proxy');
await installPackages(['wrk']);
await buildUpstream();
const session = createSession();
process.on('exit', session.abandon);
try {
  const upstream = await startMembers(session, { count: 512, cpu: LOAD_CORE, probe: PROBE });
  for (const build of builds) {
    for (const cell of CELLS.filter(({ name }) => name.includes(values.cells))) {
      console.log(`${build}: ${cell.name}`);
      const rows = await inRounds({ rounds, peers: ['plain', 'many'] }, ({ peer }) => measure(build, cell, peer, upstream.members));
      say('CPU per request', rows, 'us', (row) => row.cpu_ns / row.requests / 1000);
      say('p99', rows, 'ms', (row) => row.p99_us / 1000);
      say('requests per second', rows, '', (row) => row.requests / row.seconds);
    }
  }
} finally {
  await session.close();
}

async function measure(build, { slots: plainSlots, connections, many, anywhere }, peer, paths) {
  const { members, routes, threads, slots } = { ...PLAIN, slots: plainSlots, ...(peer === 'many' ? many : {}) };
  const port = await freePort();
  const file = session.write('hostler.toml', configuration({ port, members: paths.slice(0, members), routes, threads, slots }));
  const cpu = anywhere ? undefined : PROXY_CORE;
  const processes = [session.start(build, ['start', '-c', file], { cpu, name: 'hostler' })];
  await untilAnswers(port, { path: PROBE, processes });
  const at = { port, connections, cpu: LOAD_CORE };
  await wrk(session, { ...at, seconds: WARM_SECONDS });
  const figures = await cpuDuring(processes, () => wrk(session, { ...at, seconds }));
  await stopAll(session, processes);
  if (Object.values(figures.errors).some((count) => count > 0)) throw new Error(`errors: ${JSON.stringify(figures.errors)}`);
  return figures;
}

function configuration({ port, members, routes, threads, slots }) {
  // The route of the probe is one of many.
  const others = Array.from({ length: routes - 1 }, (_, route) => `
[[routes]]
match = "${route % 2 === 0 ? `app-${route}.bench.test/*` : `/app-${route}/*`}"
pool = "web"`);
  return `[server]
listen = ["127.0.0.1:${port}"]
admin = "off"
threads = ${threads}
access_log = "off"

[pools.web]
members = ${JSON.stringify(members.map((path) => `unix:${path}`))}
concurrency = ${slots}

[pools.web.queue]
limit = 10000
timeout = "5s"
${others.join('\n')}

[[routes]]
match = "/rooms/*"
pool = "web"
`;
}

function say(what, rows, unit, value) {
  const of = (peer) => `${peer} ${median(rows.filter((row) => row.peer === peer).map(value)).toFixed(2)} ${unit}`.trimEnd();
  const ratio = pairedRatio(rows, { one: 'many', other: 'plain', value });
  console.log(`  ${what}: many / plain ${summaryText(ratio, 3)}; ${of('plain')}, ${of('many')}`);
}
