// The app without Hostler: bare worker processes on Unix sockets or ports, and Node's own cluster. The app listens on
// PORT, a number or the path of a socket; Node's listen() accepts both.
import { fileURLToPath } from 'node:url';
import { freePort } from '../lib/session.mjs';
import { untilAnswers } from '../lib/http.mjs';

const PRIMARY = fileURLToPath(new URL('cluster-primary.mjs', import.meta.url));

/** One plain `node` process. `at` is a port or a path. */
export function startWorker(session, { app, at }) {
  const env = { NODE_ENV: 'production', PORT: String(at) };
  return session.start(process.execPath, app.args, { cwd: app.dir, env, name: 'worker' });
}

/** `count` bare workers on their own sockets, for a proxy in front of them. */
export async function startWorkers(session, { app, count, on = 'socket' }) {
  const workers = [];
  for (let i = 0; i < count; i += 1) {
    const at = on === 'socket' ? session.path('worker.sock') : await freePort();
    workers.push({ at, started: startWorker(session, { app, at }) });
  }
  for (const { at, started } of workers) await untilAnswers(at, { path: app.short, processes: [started] });
  return workers;
}

/** Node's cluster with its default scheduling: the primary passes connections to the workers in turn. */
export async function startCluster(session, { app, workers }) {
  const launched = await launchCluster(session, { app, workers });
  await untilAnswers(launched.port, { path: app.short, processes: launched.processes });
  return launched;
}

/** Starts it without waiting for a response, because one scenario measures the first responses. */
export async function launchCluster(session, { app, workers }) {
  const port = await freePort();
  const env = { NODE_ENV: 'production', PORT: String(port), WORKERS: String(workers) };
  return { port, processes: [session.start(process.execPath, [PRIMARY, ...app.args], { cwd: app.dir, env, name: 'cluster' })] };
}
