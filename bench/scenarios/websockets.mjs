// WebSockets: what a message costs one proxy thread, through a thousand sockets that are mostly idle, there and back.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAnswers } from '../lib/http.mjs';
import { createProgress } from '../lib/progress.mjs';
import { cpuTime, family, loadAverage } from '../lib/procfs.mjs';
import { buildHostler, buildSockets, installPackages, socketsBinary } from '../lib/tools.mjs';
import { haproxy } from '../peers/haproxy.mjs';
import { hostler } from '../peers/hostler.mjs';
import { nginx } from '../peers/nginx.mjs';
import { rotated } from '../peers/renders.mjs';

const PEERS = { hostler, nginx, haproxy };
const SOCKETS = 1000;
const RATES = [1000, 10_000];
const BYTES = 100;
const PROXY_CORE = 0;
const LOAD_CORE = 1;

export const websockets = {
  name: 'websockets',
  peers: Object.keys(PEERS),
  titles: Object.fromEntries(Object.entries(PEERS).map(([name, peer]) => [name, peer.title])),
  settings: { rounds: 6, seconds: 10 },
  quick: { rounds: 1, seconds: 2 },

  async prepare(peers) {
    if (availableParallelism() < 2) throw new Error('the websockets scenario needs two cores: one for the proxy, one for the load');
    await installPackages(peers.flatMap((name) => PEERS[name].packages));
    await buildSockets();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds }) {
    const steps = rounds * RATES.length * peers.length;
    const progress = createProgress({ steps, plannedSeconds: steps * (seconds + 4) });
    progress.begin('websockets');
    const rows = [];
    for (let round = 1; round <= rounds; round += 1) {
      for (const rate of RATES) {
        for (const peer of rotated(peers, round - 1)) {
          const row = { round, rate, peer, ...(await measure(session, { peer, rate, seconds })) };
          rows.push(row);
          progress.step(described(row, rounds));
        }
      }
    }
    return { settings: { rounds, seconds, sockets: SOCKETS, bytes: BYTES }, rates: RATES, rows };
  },
};

async function measure(session, { peer, rate, seconds }) {
  const load1 = loadAverage();
  const member = session.path('echo.sock');
  const echo = session.start(socketsBinary, ['-serve', member], { cpu: LOAD_CORE, name: 'echo' });
  await untilAnswers(member, { processes: [echo] });
  const settings = { members: [member], slots: 64, tunnels: 2 * SOCKETS, cpu: PROXY_CORE, queueTimeout: '5s', probe: '/' };
  const running = await PEERS[peer].start(session, settings);

  const load = ['-at', `ws://127.0.0.1:${running.port}/echo`, '-count', SOCKETS, '-rate', rate, '-size', BYTES, '-time', `${seconds}s`];
  const { started, printed } = session.begin(socketsBinary, load.map(String), { cpu: LOAD_CORE, name: 'sockets' });
  const pids = running.processes.flatMap((one) => family(one.pid));
  // The generator is silent around what it sends, so that neither the handshakes nor the goodbyes are in the readings.
  await said(started, 'open');
  const before = cpuTime(pids);
  await said(started, 'sent');
  const after = cpuTime(pids);
  const { sent, echoed, took_us, p50_us, p99_us, late_us } = JSON.parse(await printed);
  for (const one of [...running.processes, echo]) await session.stop(one);
  const cpu = { cpu_ns: after.scheduled - before.scheduled, cpu_ticks_ns: after.ticks - before.ticks };
  return { load1, sent, echoed, seconds: took_us / 1e6, p50_us, p99_us, late_us, ...cpu };
}

async function said(started, phase) {
  while (!readFileSync(started.log, 'utf8').split('\n').includes(phase)) {
    if (started.ended !== null) throw new Error(`${started.name} ended before "${phase}":\n${readFileSync(started.log, 'utf8')}`);
    await delay(20);
  }
}

function described({ round, rate, peer, sent, echoed, seconds, cpu_ns, p99_us }, rounds) {
  return `round ${round}/${rounds}  ${rate}/s  ${peer}: ${(cpu_ns / echoed / 1000).toFixed(2)} us CPU/message, `
    + `${(cpu_ns / seconds / 1e7).toFixed(1)} % of a core, p99 ${(p99_us / 1000).toFixed(1)} ms${sent > echoed ? `, ${sent - echoed} LOST` : ''}`;
}
