// PM2 in cluster mode, set up as in its documentation for reloads without downtime: `wait_ready`, long timeouts, and an
// app that stops gracefully (pm2-app.cjs). A separate PM2 daemon in its own folder.
import { fileURLToPath } from 'node:url';
import { untilAnswers } from '../lib/http.mjs';
import { freePort } from '../lib/session.mjs';
import { pm2Script } from '../lib/tools.mjs';

const WRAPPER = fileURLToPath(new URL('pm2-app.cjs', import.meta.url));

export async function startPm2(session, { app, workers }) {
  const launched = await launchPm2(session, { app, workers });
  await untilAnswers(launched.port, { path: app.short, processes: launched.processes() });
  return launched;
}

/** Starts it without waiting for a response, because one scenario measures the first responses. */
export async function launchPm2(session, { app, workers }) {
  const port = await freePort();
  const env = { PM2_HOME: session.path('pm2'), PM2_PROGRAMMATIC: 'true', NO_COLOR: '1' };
  const file = session.write('ecosystem.config.cjs', `module.exports = ${JSON.stringify({ apps: [description({ app, workers, port })] })};\n`);
  // In the foreground, so that the bench can stop it. Reloads are commands, as for any other daemon.
  const started = session.start(process.execPath, [pm2Script, 'start', file, '--no-daemon'], { cwd: app.dir, env, name: 'pm2' });
  const deploy = () => session.run(process.execPath, [pm2Script, 'reload', 'site'], { cwd: app.dir, env, name: 'pm2-reload' });
  return { port, processes: () => [started], deploy };
}

function description({ app, workers, port }) {
  return {
    name: 'site', script: WRAPPER, cwd: app.dir, exec_mode: 'cluster', instances: workers,
    wait_ready: true, listen_timeout: 10_000, kill_timeout: 10_000, env: { NODE_ENV: 'production', PORT: String(port), BENCH_APP: app.args[0] },
  };
}
