// memcached: hits and misses while the memcached behind the cache is slow, sends garbage, hangs or is gone.
import { fileURLToPath } from 'node:url';
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAnswers } from '../lib/http.mjs';
import { cpuDuring } from '../lib/procfs.mjs';
import { createProgress, errorsTold } from '../lib/progress.mjs';
import { inRounds } from '../lib/rounds.mjs';
import { freePort } from '../lib/session.mjs';
import { buildHostler, installPackages, needTwoCores } from '../lib/tools.mjs';
import { wrk } from '../lib/wrk.mjs';
import { CACHES } from '../peers/caches.mjs';
import { stopAll } from '../peers/renders.mjs';

const app = (name) => fileURLToPath(new URL(`../apps/cache/${name}`, import.meta.url));
const CACHE_CORE = 0;
const LOAD_CORE = 1;
const CONNECTIONS = 64;
const KEPT = '/page/1000/one';
const PAGES = 200_000;
const SEEN_MS = 100;

/** Without memcached, with a good one, and with four kinds of failures. */
const STATES = ['none', 'fine', 'slow', 'garbled', 'hung', 'gone'];

export const memcached = {
  name: 'memcached',
  peers: ['hostler'],
  titles: { hostler: 'Hostler' },
  settings: { rounds: 2, seconds: 2, warmup: 1 },
  quick: { rounds: 1, seconds: 1, warmup: 1 },

  lasts: ({ rounds, seconds, warmup }) => rounds * STATES.length * (2 * seconds + warmup + 1.5),

  async prepare() {
    needTwoCores('memcached', 'the cache');
    await installPackages(['wrk', 'memcached']);
    await buildHostler();
  },

  async run(session, { peers, rounds, seconds, warmup }) {
    const steps = rounds * STATES.length;
    const progress = createProgress({ steps, plannedSeconds: memcached.lasts({ rounds, seconds, warmup }) });
    progress.begin('memcached');
    // No page is requested twice, so each request is a question to memcached.
    const pages = Array.from({ length: PAGES }, (_, i) => `/page/1000/${i}`);
    const requests = session.write('requests', `${pages.join('\n')}\n`);
    const rows = await inRounds({ rounds, cells: STATES, peers, progress, told }, ({ cell: state }) => measure(session, { state, requests, seconds, warmup }));
    return { settings: { rounds, seconds, warmup, connections: CONNECTIONS }, states: STATES, rows };
  },
};

async function measure(session, { state, requests, seconds, warmup }) {
  const origin = session.path('origin.sock');
  const behind = [session.start(process.execPath, [app('origin.mjs')], { cpu: LOAD_CORE, env: { PORT: origin }, name: 'origin' })];
  await untilAnswers(origin, { path: '/count', processes: behind });
  const tier = state === 'none' ? undefined : await startMemcached(session);
  const running = await CACHES.hostler.start(session, { origin, cpu: CACHE_CORE, megabytes: 1024, memcached: tier?.port });
  await untilAnswers(running.port, { path: KEPT, processes: running.processes });

  const to = { port: running.port, path: KEPT, connections: CONNECTIONS, cpu: LOAD_CORE };
  await wrk(session, { ...to, seconds: warmup });
  tier?.become(state);
  await delay(SEEN_MS);
  const counted = (load) => cpuDuring(running.processes, () => wrk(session, { ...to, ...load, seconds }));
  const misses = await counted({ many: { requests } });
  const hits = await counted({});
  await stopAll(session, [...running.processes, ...(tier?.processes ?? []), ...behind]);
  return { cell: state, hits, misses };
}

/** Starts memcached, and the proxy between it and Hostler. */
async function startMemcached(session) {
  const [own, port] = [await freePort(), await freePort()];
  const mode = session.write('mode', 'fine');
  const args = [...(process.getuid() === 0 ? ['-u', 'root'] : []), '-l', '127.0.0.1', '-U', '0', '-p', String(own), '-m', '256'];
  const env = { PORT: String(port), MEMCACHED: String(own), MODE: mode };
  const processes = [
    session.start('memcached', args, { cpu: LOAD_CORE, name: 'memcached' }),
    session.start(process.execPath, [app('between.mjs')], { cpu: LOAD_CORE, env, name: 'between' }),
  ];
  return { port, processes, become: (state) => writeFileSync(mode, state) };
}

function told([{ cell, hits, misses }]) {
  const part = ({ requests, seconds, p99_us }) => `${Math.round(requests / seconds)}/s, p99 ${(p99_us / 1000).toFixed(1)} ms`;
  return `${cell}: hits ${part(hits)}; misses ${part(misses)}${errorsTold(hits.errors, misses.errors)}`;
}
