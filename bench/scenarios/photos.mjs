// Photos: many lookups at once that each wait for a slow upstream, against what the same upstream takes without anything between.
import { bursts } from '../lib/burst.mjs';
import { loadAverage } from '../lib/procfs.mjs';
import { createProgress } from '../lib/progress.mjs';
import { buildBurst, buildHostler, installModules, installPackages } from '../lib/tools.mjs';
import { PHOTOS, PHOTO_TITLES, call, startUpstream } from '../peers/photos.mjs';
import { rotated, stopAll } from '../peers/renders.mjs';

const COUNTS = [80, 500];
const LATENCY_MS = 200;
const OK = { direct: '200' };

export const photos = {
  name: 'photos',
  peers: Object.keys(PHOTOS),
  titles: { direct: 'the upstream itself', ...PHOTO_TITLES },
  // Node compiles what runs often: a process that has just started takes twice as long. The first turns are kept, and reported apart.
  settings: { rounds: 3, turns: 30, warm: 12 },
  quick: { rounds: 1, turns: 4, warm: 2 },

  async prepare(peers) {
    await installModules();
    if (peers.includes('nginx')) await installPackages(['nginx']);
    await buildBurst();
    if (peers.includes('hostler')) await buildHostler();
  },

  async run(session, { peers, rounds, turns, warm }) {
    const each = (LATENCY_MS + 300) / 1000;
    const progress = createProgress({ steps: rounds * COUNTS.length, plannedSeconds: rounds * COUNTS.length * turns * (peers.length + 1) * each });
    progress.begin('photos');
    const rows = [];
    for (let round = 1; round <= rounds; round += 1) {
      for (const count of COUNTS) {
        const load1 = loadAverage();
        const measured = await measure(session, { peers: rotated(peers, round - 1), count, turns });
        rows.push(...measured.map((row) => ({ round, count, load1, warm: row.turn >= warm, ...row })));
        progress.step(`round ${round}/${rounds}  ${count} at once: ${described(measured, warm)}`);
      }
    }
    return { settings: { rounds, turns, warm, latency: LATENCY_MS }, counts: COUNTS, rows };
  },
};

/** Fresh processes, all peers in turn. An idle process costs nothing, so that all of them may be there at once. */
async function measure(session, { peers, count, turns }) {
  const upstream = await startUpstream(session, { latency: LATENCY_MS });
  const running = [];
  for (const peer of peers) running.push([peer, await PHOTOS[peer](session, upstream)]);
  const view = running.map(([peer, { port }]) => [peer, `http://127.0.0.1:${port}/view/%d`]);
  const targets = { direct: `http://127.0.0.1:${upstream.port}${call('%d')}`, ...Object.fromEntries(view) };
  const rows = await bursts(session, { targets, count, turns, first: 1 });
  await stopAll(session, [...running.flatMap(([, { processes }]) => processes), ...upstream.processes]);
  return rows.map(({ ends, ...row }) => ({ ...row, ok: ends[OK[row.peer] ?? '302'] ?? 0, ...troubles(row.peer, ends) }));
}

/** Whatever ended in another way than it should, by its status or by what went wrong. */
function troubles(peer, { [OK[peer] ?? '302']: _ok, ...others }) {
  return Object.keys(others).length > 0 ? { others } : {};
}

function described(rows, warm) {
  const peers = [...new Set(rows.map(({ peer }) => peer))];
  return peers.map((peer) => {
    const own = rows.filter((row) => row.peer === peer);
    const late = own.filter(({ turn }) => turn >= warm).map(({ took_us }) => took_us / 1000).sort((a, b) => a - b);
    const failed = own.filter(({ others }) => others).length;
    return `${peer} ${Math.round(late[late.length >> 1] ?? NaN)} ms${failed > 0 ? `, ${failed} bursts with FAILURES` : ''}`;
  }).join(', ');
}
