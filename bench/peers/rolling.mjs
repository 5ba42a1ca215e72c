// HAProxy with workers that are replaced, as an expert scripts it: the successor runs and is warm before its predecessor
// is drained over HAProxy's runtime socket. Half of the server lines are in use, the others are for successors.
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { startHaproxy } from './haproxy.mjs';
import { startWorker } from './node.mjs';
import { untilAnswers } from '../lib/http.mjs';
import { freePort } from '../lib/session.mjs';

const LOOK_EVERY_MS = 20;

export async function startRolling(session, { app, workers: count, queueTimeout }) {
  const seats = Array.from({ length: 2 * count }, (_, i) => ({ name: `worker${i + 1}`, at: session.path('worker.sock'), worker: null }));
  for (const seat of seats.slice(0, count)) await fill(session, app, seat);
  const port = await freePort();
  const runtime = session.path('runtime.sock');
  const started = startHaproxy(session, {
    bind: `127.0.0.1:${port}`, members: seats.map(({ at }) => at), slots: 1, queueTimeout, edge: true, runtime, spare: count,
  });
  await untilAnswers(port, { path: app.short, processes: [started] });

  const tell = (command) => ask(runtime, command);
  async function deploy() {
    const olds = seats.filter(({ worker }) => worker !== null);
    const news = seats.filter(({ worker }) => worker === null);
    for (const [i, old] of olds.entries()) {
      await fill(session, app, news[i]);
      await tell(`set server workers/${news[i].name} state ready`);
      await tell(`set server workers/${old.name} state drain`);
      while (await isBusy(tell, old.name)) await delay(LOOK_EVERY_MS);
      await tell(`set server workers/${old.name} state maint`);
      await session.stop(old.worker);
      old.worker = null;
    }
  }
  const processes = () => [started, ...seats.flatMap(({ worker }) => worker ?? [])];
  return { port, processes, deploy };
}

/** Starts a worker and lets it render once. */
async function fill(session, app, seat) {
  rmSync(seat.at, { force: true }); // a process that SIGTERM ended has left its socket behind
  seat.worker = startWorker(session, { app, at: seat.at });
  await untilAnswers(seat.at, { path: app.short, processes: [seat.worker] });
}

/** The output of "show stat" is a table with the column names in its header. */
async function isBusy(tell, name) {
  const lines = (await tell('show stat')).replace(/^# /, '').split('\n').map((line) => line.split(','));
  const column = (title) => lines[0].indexOf(title);
  const row = lines.find((line) => line[column('pxname')] === 'workers' && line[column('svname')] === name);
  return Number(row[column('scur')]) + Number(row[column('qcur')]) > 0;
}

/** One command, one response, one connection. */
function ask(path, command) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    const socket = connect(path, () => socket.write(`${command}\n`));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => {
      const answer = Buffer.concat(chunks).toString();
      if (command.startsWith('set') && answer.trim() !== '') reject(new Error(`haproxy, told "${command}": ${answer.trim()}`));
      else resolve(answer);
    });
  });
}
