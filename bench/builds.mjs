// node bench/builds.mjs OLD NEW [--rounds N] [--seconds N] measures the cost of a change: two builds of Hostler take
// turns in the cells of the proxy scenario, then hold idle connections. OLD and NEW are paths of release builds. Prints
// NEW's figures divided by OLD's, and writes no file.
import { once } from 'node:events';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';

import { get } from './lib/http.mjs';
import { cpuDuring, residentBytes } from './lib/procfs.mjs';
import { inRounds } from './lib/rounds.mjs';
import { createSession } from './lib/session.mjs';
import { median, pairedRatio, summaryText } from './lib/statistics.mjs';
import { buildUpstream, installPackages, needTwoCores } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { hostler } from './peers/hostler.mjs';
import { startMembers } from './peers/members.mjs';
import { stopAll } from './peers/renders.mjs';
import { CELLS, LOAD_CORE, MEMBERS, PROBE, PROXY_CORE } from './scenarios/proxy.mjs';

const IDLE = 3000;
const WARM_SECONDS = 1;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '6' }, seconds: { type: 'string', default: '4' } },
});
if (positionals.length !== 2) {
  console.error('usage: node bench/builds.mjs OLD NEW [--rounds N] [--seconds N]');
  process.exit(2);
}
const builds = { old: positionals[0], new: positionals[1] };
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

needTwoCores('proxy', 'the proxy');
await installPackages(['wrk']);
await buildUpstream();
const session = createSession();
process.on('exit', session.abandon);
try {
  const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
  for (const cell of CELLS) {
    const rows = await inTurns(({ slots }) => start(upstream, slots), cell, async (running) => {
      const at = { port: running.port, connections: cell.connections, cpu: LOAD_CORE };
      await wrk(session, { ...at, seconds: WARM_SECONDS });
      const { cpu_ns, requests, errors } = await cpuDuring(running.processes, () => wrk(session, { ...at, seconds }));
      if (Object.values(errors ?? {}).some((count) => count > 0)) throw new Error(`errors: ${JSON.stringify(errors)}`);
      return { value: cpu_ns / requests / 1000 };
    });
    say(`${cell.slots} slots, c = ${cell.connections}: CPU per request`, rows, 'us');
  }
  const rows = await inTurns(() => start(upstream, 64), {}, idleKilobytes);
  say('an idle connection: memory', rows, 'KB');
} finally {
  await session.close();
}

/** Both builds in turn, a new process each time. */
function inTurns(begin, cell, measure) {
  return inRounds({ rounds, peers: Object.keys(builds) }, async ({ peer }) => {
    process.env.HOSTLER_BIN = builds[peer];
    const running = await begin(cell);
    const row = await measure(running);
    await stopAll(session, running.processes);
    return row;
  });
}

function start(upstream, slots) {
  return hostler.start(session, { members: upstream.members, slots, cpu: PROXY_CORE, queueTimeout: '5s', probe: PROBE });
}

/** The memory of each connection that has had one response and is kept open. */
async function idleKilobytes({ port, processes }) {
  const before = residentBytes(processes[0].pid);
  const sockets = [];
  while (sockets.length < IDLE) {
    const socket = connect({ port, host: '127.0.0.1' });
    await once(socket, 'connect');
    socket.write(`GET ${PROBE} HTTP/1.1\r\nHost: bench\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    if (!answer.toString().startsWith('HTTP/1.1 200')) throw new Error(`connection ${sockets.length + 1}: ${answer}`);
    sockets.push(socket);
  }
  await get(port, PROBE);
  const after = residentBytes(processes[0].pid);
  sockets.forEach((socket) => socket.destroy());
  return { value: (after - before) / IDLE / 1000 };
}

function say(what, rows, unit) {
  const of = (peer) => `${peer} ${median(rows.filter((row) => row.peer === peer).map((row) => row.value)).toFixed(2)} ${unit}`;
  const ratio = pairedRatio(rows, { one: 'new', other: 'old', value: (row) => row.value });
  console.log(`${what}: new / old ${summaryText(ratio, 3)}; ${of('old')}, ${of('new')}`);
}
