// WebSockets: the cost of a message for one proxy thread, there and back, through a thousand sockets that are mostly
// idle.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAnswers } from '../lib/http.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { inRounds, titlesOf } from '../lib/rounds.mjs';
import { buildHostler, buildSockets, installPackages, needTwoCores, socketsBinary } from '../lib/tools.mjs';
import { haproxy } from '../peers/haproxy.mjs';
import { hostler } from '../peers/hostler.mjs';
import { nginx } from '../peers/nginx.mjs';
import { stopAll } from '../peers/renders.mjs';

const PEERS = { hostler, nginx, haproxy };
const SOCKETS = 1000;
const RATES = [1000, 10_000];
const BYTES = 100;
const PROXY_CORE = 0;
const LOAD_CORE = 1;

export const websockets = {
  name: 'websockets',
  peers: Object.keys(PEERS),
  titles: titlesOf(PEERS),
  settings: { rounds: 3, seconds: 4 },
  quick: { rounds: 1, seconds: 6 },

  lasts: ({ rounds, seconds }, peers) => rounds * RATES.length * peers.length * (seconds + 4),

  async prepare(peers) {
    needTwoCores('websockets', 'the proxy');
    await installPackages(peers.flatMap((name) => PEERS[name].packages));
    await buildSockets();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, seconds }) {
    const steps = rounds * RATES.length * peers.length;
    const progress = createProgress({ steps, plannedSeconds: websockets.lasts({ rounds, seconds }, peers) });
    progress.begin('websockets');
    const rows = await inRounds({ rounds, cells: RATES, peers, progress, told }, ({ cell: rate, peer }) => measure(session, { peer, rate, seconds }));
    return { settings: { rounds, seconds, sockets: SOCKETS, bytes: BYTES }, rates: RATES, rows };
  },
};

async function measure(session, { peer, rate, seconds }) {
  const member = session.path('echo.sock');
  const echo = session.start(socketsBinary, ['-serve', member], { cpu: LOAD_CORE, name: 'echo' });
  await untilAnswers(member, { processes: [echo] });
  const settings = { members: [member], slots: 64, tunnels: 2 * SOCKETS, cpu: PROXY_CORE, queueTimeout: '5s', probe: '/' };
  const running = await PEERS[peer].start(session, settings);

  const load = ['-at', `ws://127.0.0.1:${running.port}/echo`, '-count', SOCKETS, '-rate', rate, '-size', BYTES, '-time', `${seconds}s`];
  const { started, printed } = session.begin(socketsBinary, load.map(String), { cpu: LOAD_CORE, name: 'sockets' });
  // The generator pauses before and after its messages, so that neither handshakes nor closing count.
  await said(started, 'open');
  const cpu = await cpuDuring(running.processes, () => said(started, 'sent'));
  const { sent, echoed, took_us, p50_us, p99_us, late_us } = JSON.parse(await printed);
  await stopAll(session, [...running.processes, echo]);
  return { rate, sent, echoed, seconds: took_us / 1e6, p50_us, p99_us, late_us, ...cpu };
}

async function said(started, phase) {
  while (!readFileSync(started.log, 'utf8').split('\n').includes(phase)) {
    if (started.ended !== null) throw new Error(`${started.name} ended before "${phase}":\n${readFileSync(started.log, 'utf8')}`);
    await delay(20);
  }
}

function told([{ rate, peer, sent, echoed, seconds, cpu_ns, p99_us }]) {
  return `${rate}/s  ${peer}: ${(cpu_ns / echoed / 1000).toFixed(2)} us CPU/message, `
    + `${(cpu_ns / seconds / 1e7).toFixed(1)} % of a core, p99 ${(p99_us / 1000).toFixed(1)} ms${sent > echoed ? `, ${sent - echoed} LOST` : ''}`;
}
