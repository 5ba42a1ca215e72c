// The two rendering services, each with two workers: @hostler/render behind Hostler, and npm hypernova with its own
// cluster. Knows how they are started, not what is measured.
import { launch } from './hostler.mjs';
import { untilAnswers } from '../lib/http.mjs';
import { services } from '../lib/islands.mjs';
import { freePort } from '../lib/session.mjs';

export const ENDPOINT = '/batch';

export const ISLAND_PEERS = {
  async hostler(session, settings) {
    const { workers, queueTimeout } = settings;
    const pool = [
      `command = "node ${services.hostler}"`,
      'env = { NODE_ENV = "production" }',
      `workers = ${workers}`,
      // While one request is rendered, the next one is already at the worker. With such short renders, the worker would
      // otherwise wait for the transfer.
      'concurrency = 2',
      'gc = "off"',
    ];
    const launched = await launch(session, { pool, queueTimeout, threads: 1 });
    return up(launched, settings);
  },

  async hypernova(session, settings) {
    const port = await freePort();
    const env = { NODE_ENV: 'production', WORKERS: String(settings.workers), PORT: String(port) };
    const started = session.start(process.execPath, [services.hypernova], { cwd: services.folder, env, name: 'hypernova' });
    return up({ port, processes: [started] }, settings);
  },
};

async function up(launched, { probe }) {
  await untilAnswers(launched.port, { path: ENDPOINT, body: probe, processes: launched.processes });
  return launched;
}
