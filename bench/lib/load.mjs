// Runs the load generator (bench/load, vegeta) and computes figures from its hits. Knows the generator, not the server
// under test.
import { loadBinary } from './tools.mjs';
import { percentile } from './statistics.mjs';

/** Open loop: seeded Poisson arrivals of the mix. Every percentile counts from the intended start. */
export async function openLoop(session, { rate, seconds, ...settings }) {
  return figures(await steppedLoop(session, { steps: [{ rate, seconds }], ...settings }));
}

/** The same, with how many pages each edge got before the loop ended: [{ short, long }]. After it the queue drains, and the edges do not compete any more. */
export async function openLoopByEdge(session, { rate, seconds, ...settings }) {
  const report = await steppedLoop(session, { steps: [{ rate, seconds }], ...settings });
  const pages = Array.from({ length: settings.mix.edges }, () => ({ short: 0, long: 0 }));
  const isInTime = (hit) => hit[4] + hit[3] <= seconds * 1e6;
  for (const hit of report.hits.filter((hit) => ok(hit) && isInTime(hit))) pages[hit[6]][hit[0] === 1 ? 'long' : 'short'] += 1;
  return { ...figures(report), pages };
}

/** An open loop with a changing rate. Returns the generator's own report, for `figures` and `bySecond`. */
export async function steppedLoop(session, settings) {
  const { printed } = begin(session, openArgs(settings));
  return parsed(await printed);
}

/** The requests that an open loop with this seed would send: [planned start in microseconds, 1 if it is long]. */
export async function arrivals(session, settings) {
  return JSON.parse(await begin(session, [...openArgs({ port: 1, ...settings }), '-plan']).printed);
}

/** An open loop for as long as `work` takes. Returns its report and the result of `work`. */
export async function loopDuring(session, { rate, longest, ...settings }, work) {
  const { started, printed } = begin(session, openArgs({ steps: [{ rate, seconds: longest }], ...settings }));
  const done = await work();
  started.child.kill('SIGTERM');
  return { report: parsed(await printed), done };
}

/** Counts errors by kind, without the ports, which would make each error another kind. */
function parsed(text) {
  const report = JSON.parse(text);
  const errors = {};
  for (const [text, count] of Object.entries(report.errors)) {
    const kind = text.replace(/^(?:Get|Post) "[^"]*": /, '').replace(/127\.0\.0\.1:\d+/g, 'port');
    errors[kind] = (errors[kind] ?? 0) + count;
  }
  return { ...report, errors };
}

/** Closed loop with `each` requests at once per target: measures what the targets can do at most, and warms them up. */
export async function closedLoop(session, { ports, app, mix, seconds, seed, each }) {
  const args = [...common({ app, mix, seed }), '-targets', ports.map(url).join(','), '-closed', String(each)];
  const report = JSON.parse(await begin(session, [...args, '-duration', `${seconds}s`]).printed);
  const { ok, refused, failed, p50_us, p99_us, short, long } = figures(report);
  return { ok, refused, failed, seconds: report.seconds, p50_us, p99_us, short, long };
}

/**
 * The generator stands for other machines. It must not wait for a core behind the renders, otherwise its starts are late. Only
 * root may lower a nice value; without root the lag is larger, and it is reported.
 */
function begin(session, args) {
  const first = process.getuid() === 0 ? ['nice', '-n', '-10', loadBinary] : [loadBinary];
  return session.begin(first[0], [...first.slice(1), ...args], { name: 'load' });
}

/** `ports`: several, for a loop in which each edge keeps to one of them. */
function openArgs({ port, ports = [port], steps, patience = 30, ...settings }) {
  const written = steps.map(({ rate, seconds }) => `${rate.toFixed(3)}:${seconds}s`).join(',');
  return [...common(settings), '-targets', ports.map(url).join(','), '-steps', written, '-timeout', `${patience}s`];
}

/** `app.body`, if any, is a file to POST. `from`: the address of the client of each edge, with %d for its number. `mix.uneven`: edge n sends n + 1 times as much as edge 0. */
function common({ app, mix, seed, from }) {
  const paths = ['-short', app.short, '-long', app.long, '-long-share', String(mix.longShare), ...(app.body ? ['-body', app.body] : []), ...(from ? ['-from', from] : []), ...(mix.uneven ? ['-uneven'] : [])];
  return [...paths, '-edges', String(mix.edges), '-seed', String(seed)];
}

/** Whether a hit got the expected response. */
export const ok = ([, status]) => status >= 200 && status < 300;

const url = (port) => `http://127.0.0.1:${port}`;

/**
 * Percentiles over all planned requests: a refusal or a failure counts as a response that never came, so that no peer improves
 * its tail by refusing. (Infinity becomes null in JSON.)
 */
export function figures({ planned, hits, errors = {} }) {
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
    ...percentiles(times(hits), { p50: 50, p99: 99 }),
    short: percentiles(short, { p50: 50, p99: 99 }),
    long: percentiles(long, { p50: 50, p99: 99 }),
    slowest_us: slowest(times(hits)),
    start_lag_p99_us: percentile(hits.map((row) => row[2]), 99),
    ...(Object.keys(errors).length > 0 ? { errors } : {}),
  };
}

/**
 * The p99 of the slowdown: the time of a page divided by the time of such a page `alone`, { short, long }. A refusal or a failure
 * counts as a response that never came.
 */
export function slowdownP99(hits, { short, long }) {
  return percentile(hits.map((hit) => (ok(hit) ? hit[3] / (hit[0] === 1 ? long : short) : Infinity)), 99);
}

/** The slowest 2 %. This is enough for the p99.9 over all of up to 20 rounds, for which one round has too few requests. */
function slowest(values) {
  return Array.from(Float64Array.from(values).sort().slice(-Math.ceil(values.length / 50)));
}

function percentiles(values, wanted) {
  return Object.fromEntries(Object.entries(wanted).map(([name, percent]) => [`${name}_us`, percentile(values, percent)]));
}
