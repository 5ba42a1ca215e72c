// node bench/stages.mjs [BINARY] [--slots 64] [--connections 50] [--seconds 10] [--folder DIR] shows where the CPU of the
// proxy scenario goes: the share of each stage of a request, and the system calls. BINARY is a build of Hostler with
// symbols. DIR gets the table, the stacks and, if inferno-flamegraph is installed, a flame graph.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { countedCalls, sampled } from './lib/perf.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { createSession } from './lib/session.mjs';
import { stageOf, stageTable } from './lib/stages.mjs';
import { buildUpstream, installPackages, needTwoCores, ROOT } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { hostler } from './peers/hostler.mjs';
import { startMembers } from './peers/members.mjs';
import { LOAD_CORE, MEMBERS, PROBE, PROXY_CORE } from './scenarios/proxy.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    slots: { type: 'string', default: '64' },
    connections: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '10' },
    folder: { type: 'string', default: 'bench/.cache/stages' },
  },
});
if (positionals.length > 0) process.env.HOSTLER_BIN = positionals[0];
const [slots, connections, seconds] = [values.slots, values.connections, values.seconds].map(Number);

needTwoCores('proxy', 'the proxy');
await installPackages(['wrk', 'linux-perf']);
await buildUpstream();
mkdirSync(values.folder, { recursive: true });
const session = createSession();
process.on('exit', session.abandon);
try {
  const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
  const running = await hostler.start(session, { members: upstream.members, slots, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE });
  const load = (time) => wrk(session, { port: running.port, connections, seconds: time, cpu: LOAD_CORE });
  const { pid } = running.processes[0];
  await load(1);
  const { cpu_ns, requests } = await cpuDuring(running.processes, () => load(3));
  const counted = await countedCalls(session, pid, () => load(1));
  const { stacks } = await sampled(session, pid, () => load(seconds));

  const [file, svg] = ['stacks.folded', 'flame.svg'].map((name) => join(values.folder, name));
  const table = stageTable(stacks, { cell: `${slots} slots, c = ${connections}`, us: cpu_ns / requests / 1000, calls: counted.calls, requests: counted.result.requests });
  console.log(table);
  writeFileSync(join(values.folder, 'stages.md'), `${table}\n`);
  // The stage is the lowest frame, so that the flame graph has the same parts as the table.
  const lines = [...stacks].map(([stack, count]) => `${stageOf(stack)};${stack} ${count}`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const path = `${join(ROOT, 'target/tools/bin')}:${process.env.PATH}`;
  const flame = spawnSync('inferno-flamegraph', ['--title', `Hostler, ${slots} slots, c = ${connections}`, file], { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, PATH: path } });
  if (flame.status === 0) writeFileSync(svg, flame.stdout);
  else console.error('no flame graph: cargo install inferno --root target/tools');
} finally {
  await session.close();
}
