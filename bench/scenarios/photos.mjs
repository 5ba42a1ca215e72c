// Photos: many lookups at once that each wait for a slow upstream, compared with the time of that upstream alone.
import { bursts } from '../lib/burst.mjs';
import { loadAverage } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { eachRound } from '../lib/rounds.mjs';
import { median } from '../lib/statistics.mjs';
import { buildBurst, buildHostler, installModules, installPackages } from '../lib/tools.mjs';
import { PHOTOS, PHOTO_TITLES, call, startUpstream } from '../peers/photos.mjs';
import { stopAll } from '../peers/renders.mjs';

const COUNTS = [80, 500];
const LATENCY_MS = 200;

export const photos = {
  name: 'photos',
  peers: Object.keys(PHOTOS),
  titles: { direct: 'the upstream itself', ...PHOTO_TITLES },
  // Node compiles code that runs often: a new process takes twice as long, until it has had thousands of lookups.
  settings: { rounds: 2, warmup: 10, turns: 10 },
  quick: { rounds: 1, warmup: 4, turns: 3 },

  lasts({ rounds, warmup, turns }, peers) {
    const sent = (warmup + COUNTS.length * (1 + turns)) * (peers.length + 1);
    return rounds * (5 + (sent * (LATENCY_MS + 250)) / 1000);
  },

  async prepare(peers) {
    await installModules();
    if (peers.includes('nginx')) await installPackages(['nginx']);
    await buildBurst();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, warmup, turns }) {
    const progress = createProgress({ steps: rounds, plannedSeconds: photos.lasts({ rounds, warmup, turns }, peers) });
    progress.begin('photos');
    const rows = await eachRound({ rounds, peers, progress, told }, ({ order, step }) => step({}, () => measure(session, { peers: order, warmup, turns })));
    return { settings: { rounds, warmup, turns, latency: LATENCY_MS }, counts: COUNTS, rows };
  },
};

/** New processes, with all peers in turn. An idle process costs nothing, so all of them may run at the same time. */
async function measure(session, { peers, warmup, turns }) {
  const upstream = await startUpstream(session, { latency: LATENCY_MS });
  const running = [];
  for (const peer of peers) running.push([peer, await PHOTOS[peer](session, upstream)]);
  const view = running.map(([peer, { port }]) => [peer, `http://127.0.0.1:${port}/view/%d`]);
  const targets = { direct: `http://127.0.0.1:${upstream.port}${call('%d')}`, ...Object.fromEntries(view) };
  const rows = [];
  let first = 1; // every lookup is for another photo, otherwise the cache would answer
  const add = async (count, times, phase) => {
    const load1 = loadAverage();
    const sent = await bursts(session, { targets, count, turns: times, first });
    first += count * times * Object.keys(targets).length;
    rows.push(...sent.map(({ ends, ...row }) => ({ phase: phase(row), count, load1, ...row, ok: ends[wanted(row.peer)] ?? 0, ...troubles(row.peer, ends) })));
  };
  await add(Math.max(...COUNTS), warmup, () => 'warmup');
  // The clients are new each time: their first burst opens the connections for the others.
  for (const count of COUNTS) await add(count, 1 + turns, ({ turn }) => (turn === 0 ? 'connecting' : 'measured'));
  await stopAll(session, [...running.flatMap(([, { processes }]) => processes), ...upstream.processes]);
  return rows;
}

const wanted = (peer) => (peer === 'direct' ? '200' : '302');

/** Results other than the expected one, by status or error. */
function troubles(peer, { [wanted(peer)]: _ok, ...others }) {
  return Object.keys(others).length > 0 ? { others } : {};
}

function told(rows) {
  const measured = rows.filter(({ phase }) => phase === 'measured');
  const took = (peer, count) => median(measured.filter((row) => row.peer === peer && row.count === count).map(({ took_us: us }) => us / 1000));
  const peers = [...new Set(rows.map(({ peer }) => peer))];
  const failed = rows.filter(({ others }) => others).length;
  const times = peers.map((peer) => `${peer} ${COUNTS.map((count) => Math.round(took(peer, count))).join(' and ')} ms`);
  return `${times.join(', ')}${failed > 0 ? `; ${failed} bursts with FAILURES` : ''}`;
}
