// Runs the load generator (bench/load, vegeta) and turns its hits into figures. Knows the generator, not what it points at.
import { loadBinary } from './tools.mjs';
import { percentile } from './statistics.mjs';

/** Open loop: seeded Poisson arrivals of the mix; every percentile counts from the intended start. */
export async function openLoop(session, { port, app, mix, rate, seconds, seed }) {
  const args = [...common({ app, mix, seconds, seed }), '-targets', url(port), '-rate', rate.toFixed(3)];
  return figures(JSON.parse(await session.run(loadBinary, args, { name: 'load' })));
}

/** Closed loop with `each` requests at once per target: what the targets can do at most, and how they are warmed. */
export async function closedLoop(session, { ports, app, mix, seconds, seed, each }) {
  const args = [...common({ app, mix, seconds, seed }), '-targets', ports.map(url).join(','), '-closed', String(each)];
  const report = JSON.parse(await session.run(loadBinary, args, { name: 'load' }));
  const { ok, refused, failed } = figures(report);
  return { ok, refused, failed, seconds: report.seconds };
}

function common({ app, mix, seconds, seed }) {
  const paths = ['-short', app.short, '-long', app.long, '-long-share', String(mix.longShare)];
  return [...paths, '-edges', String(mix.edges), '-duration', `${seconds}s`, '-seed', String(seed)];
}

const url = (port) => `http://127.0.0.1:${port}`;

/**
 * Percentiles over all that were asked for: a refusal or a failure counts as an answer that never came, so that no peer
 * improves its tail by refusing. (Infinity becomes null in JSON.)
 */
export function figures({ planned, hits, errors = {} }) {
  const ok = ([, status]) => status >= 200 && status < 300;
  const times = (rows) => rows.map((row) => (ok(row) ? row[3] : Infinity));
  const short = times(hits.filter(([long]) => long === 0));
  const long = times(hits.filter(([long]) => long === 1));
  const refused = hits.filter(([, status]) => status === 503).length;
  const answered = hits.filter(ok).length;
  return {
    planned,
    ok: answered,
    refused,
    failed: planned - answered - refused,
    ...percentiles(times(hits), { p50: 50, p99: 99, p999: 99.9 }),
    short: percentiles(short, { p50: 50, p99: 99 }),
    long: percentiles(long, { p50: 50, p99: 99 }),
    start_lag_p99_us: percentile(hits.map((row) => row[2]), 99),
    ...(Object.keys(errors).length > 0 ? { errors } : {}),
  };
}

function percentiles(values, wanted) {
  return Object.fromEntries(Object.entries(wanted).map(([name, percent]) => [`${name}_us`, percentile(values, percent)]));
}
