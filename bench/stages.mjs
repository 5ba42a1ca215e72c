// node bench/stages.mjs [NAME=]BINARY ... [--slots 64] [--connections 50] [--seconds 10] [--rounds 1] [--folder DIR] shows where
// the CPU of the proxy scenario goes: the share of each stage of a request, and the system calls. Each BINARY is a build of
// Hostler with symbols; several take turns in each round and are compared. DIR gets a page with the table, and of each build
// the stacks and, if inferno-flamegraph is installed, a flame graph.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { countedCalls, sampled } from './lib/perf.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { createSession } from './lib/session.mjs';
import { stageOf, stageTable } from './lib/stages.mjs';
import { stamp } from './lib/stamp.mjs';
import { median } from './lib/statistics.mjs';
import { buildUpstream, hostlerBinary, installPackages, needTwoCores, ROOT } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { hostler } from './peers/hostler.mjs';
import { startMembers } from './peers/members.mjs';
import { stopAll } from './peers/renders.mjs';
import { LOAD_CORE, MEMBERS, PROBE, PROXY_CORE } from './scenarios/proxy.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    slots: { type: 'string', default: '64' },
    connections: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '1' },
    folder: { type: 'string', default: 'bench/.cache/stages' },
  },
});
const [slots, connections, seconds, rounds] = [values.slots, values.connections, values.seconds, values.rounds].map(Number);
const builds = (positionals.length > 0 ? positionals : [hostlerBinary()]).map((text) => {
  const [, name = 'hostler', binary] = /^(?:([\w.-]+)=)?(.*)$/.exec(text);
  return { name, binary, measured: [] };
});

needTwoCores('proxy', 'the proxy');
await installPackages(['wrk', 'linux-perf']);
await buildUpstream();
mkdirSync(values.folder, { recursive: true });
const session = createSession();
process.on('exit', session.abandon);
try {
  const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
  for (let round = 0; round < rounds; round += 1) {
    // Each round begins with another build, because the machine drifts.
    for (let turn = 0; turn < builds.length; turn += 1) {
      const build = builds[(round + turn) % builds.length];
      build.measured.push(await measure(build.binary, upstream));
    }
  }
} finally {
  await session.close();
}
const cell = `${slots} slots, c = ${connections}`;
const columns = builds.map(summed);
const table = stageTable(columns, cell);
console.log(table);
const drawn = columns.map(draw);
writeFileSync(join(values.folder, 'stages.md'), `${page(table, drawn)}\n`);

async function measure(binary, upstream) {
  process.env.HOSTLER_BIN = binary;
  const running = await hostler.start(session, { members: upstream.members, slots, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE });
  const load = (time) => wrk(session, { port: running.port, connections, seconds: time, cpu: LOAD_CORE });
  const { pid } = running.processes[0];
  await load(1);
  const { cpu_ns, requests } = await cpuDuring(running.processes, () => load(3));
  const counted = await countedCalls(session, pid, () => load(1));
  const { stacks } = await sampled(session, pid, () => load(seconds));
  await stopAll(session, running.processes);
  const calls = new Map(Object.entries(counted.calls).map(([name, count]) => [name, count / counted.result.requests]));
  return { stacks, us: cpu_ns / requests / 1000, calls };
}

/** The rounds of one build: the sum of the samples, the median of all else. */
function summed({ name, measured }) {
  const stacks = new Map();
  for (const [stack, count] of measured.flatMap((round) => [...round.stacks])) stacks.set(stack, (stacks.get(stack) ?? 0) + count);
  const names = [...new Set(measured.flatMap((round) => [...round.calls.keys()]))];
  const calls = new Map(names.map((call) => [call, median(measured.map((round) => round.calls.get(call) ?? 0))]));
  return { name, stacks, us: median(measured.map((round) => round.us)), calls };
}

/** Writes the stacks and the flame graph. Returns the name of the picture, if there is one. */
function draw({ name, stacks }) {
  const suffix = builds.length > 1 ? `-${name}` : '';
  const file = join(values.folder, `stacks${suffix}.folded`);
  // The stage is the lowest frame, so that the flame graph has the same parts as the table.
  const lines = [...stacks].map(([stack, count]) => `${stageOf(stack)};${stack} ${count}`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const path = `${join(ROOT, 'target/tools/bin')}:${process.env.PATH}`;
  const options = ['--title', `${name}: ${cell}`, '--minwidth', '0.2', file];
  const flame = spawnSync('inferno-flamegraph', options, { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, PATH: path } });
  if (flame.status !== 0) return console.error('no flame graph: cargo install inferno --root target/tools');
  const picture = `flame${suffix}.svg`;
  writeFileSync(join(values.folder, picture), flame.stdout);
  return picture;
}

function page(text, pictures) {
  const { machine, date } = stamp();
  return [
    '<!-- Written by bench/stages.mjs. Do not edit. -->',
    '# Where the CPU of a request goes',
    '',
    `The \`proxy\` scenario with one proxy thread, sampled by perf on ${date.slice(0, 10)} (${machine.cpu}, Linux ${machine.kernel}). ${rounds} rounds of ${seconds} seconds${builds.length > 1 ? '; the builds take turns in each round' : ''}.`,
    '*us a request* is the share of a stage times the CPU of a request without perf.',
    ...builds.flatMap(({ name }) => commitOf(name)),
    '',
    text,
    ...pictures.flatMap((picture, at) => (picture ? ['', `Flame graph of ${builds[at].name}. The lowest row is the stage. Open the picture by itself to zoom and to search.`, '', `[![Flame graph of ${builds[at].name}](${picture})](${picture})`] : [])),
  ].join('\n');
}

/** What the repository says of a build whose name is a commit. */
function commitOf(name) {
  const { status, stdout } = spawnSync('git', ['log', '-1', '--format=%cs: %s', name, '--'], { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? ['', `\`${name}\` is the commit of ${stdout.trim()}.`] : [];
}
