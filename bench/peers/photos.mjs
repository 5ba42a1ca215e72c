// examples/original-photos in four ways, with the stand-in for Flickr's API as their upstream. Knows how they are
// started, not what is measured.
import { fileURLToPath } from 'node:url';
import { launch } from './hostler.mjs';
import { startNginx } from './nginx.mjs';
import { freePort } from '../lib/session.mjs';
import { untilAnswers } from '../lib/http.mjs';

const DIR = fileURLToPath(new URL('../../examples/original-photos', import.meta.url));
const KEY = 'bench';
const HEALTH = '/healthz';
// The same for all peers as in the example's hostler.toml.
const ARGS = ['--min-semi-space-size=32', '--max-semi-space-size=64', 'server.js'];

/** `latency` is in milliseconds. There is no quota: Flickr's is per hour, and one round would use it up. */
export async function startUpstream(session, { latency }) {
  const port = await freePort();
  const env = { PORT: String(port), STAND_IN_KEYS: KEY, LATENCY_MS: String(latency), LIMIT_PER_HOUR: '0' };
  const started = session.start(process.execPath, ['stand-in.js'], { cwd: DIR, env, name: 'stand-in' });
  await untilAnswers(port, { path: call('0'), processes: [started] });
  return { port, processes: [started] };
}

/** The request that the service sends, so that the bench can send it without the service. */
export const call = (id) =>
  `/services/rest/?${new URLSearchParams({ method: 'flickr.photos.getSizes', api_key: KEY, format: 'json', nojsoncallback: '1' })}&photo_id=${id}`;

/** Each returns a port and its processes. */
export const PHOTOS = {
  hostler: (session, upstream) => startHostler(session, upstream, { workers: 1 }),
  hostler2: (session, upstream) => startHostler(session, upstream, { workers: 2 }),
  async bare(session, upstream) {
    const port = await freePort();
    return answering({ port, processes: [start(session, upstream, port)] });
  },
  async nginx(session, upstream) {
    const socket = session.path('photos.sock');
    const behind = start(session, upstream, socket);
    await untilAnswers(socket, { path: HEALTH, processes: [behind] });
    const { port, started } = await startNginx(session, { upstreams: [socket] });
    return answering({ port, processes: [started, behind] });
  },
};

export const PHOTO_TITLES = { hostler: 'Hostler', hostler2: 'Hostler, 2 workers', bare: 'the app alone', nginx: 'nginx' };

async function startHostler(session, upstream, { workers }) {
  const env = Object.entries(environment(upstream)).map(([name, value]) => `${name} = ${toml(value)}`).join(', ');
  const pool = [
    `command = ${toml(['node', ...ARGS])}`, `cwd = ${toml(DIR)}`, `env = { ${env} }`, `health = ${toml(HEALTH)}`,
    `workers = ${workers}`, 'concurrency = 1024', 'choice = "least_busy"',
  ];
  return answering(await launch(session, { pool, queueTimeout: '10s', threads: 1 }));
}

function start(session, upstream, at) {
  return session.start(process.execPath, ARGS, { cwd: DIR, env: { ...environment(upstream), PORT: String(at) }, name: 'photos' });
}

const environment = ({ port }) => ({ NODE_ENV: 'production', FLICKR_API_KEY: KEY, FLICKR_URL: `http://127.0.0.1:${port}/services/rest/` });

const toml = (value) => JSON.stringify(value); // strings and arrays of strings have the same syntax in both

async function answering(peer) {
  await untilAnswers(peer.port, { path: HEALTH, processes: peer.processes });
  return peer;
}
