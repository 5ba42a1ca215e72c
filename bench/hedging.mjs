// node bench/hedging.mjs [--rounds N] [--seconds N] [--rate N] measures what second tries (`hedge`) do for the slowest responses of
// members that another program runs. Members answer some of the requests slowly. Prints the times without and with `hedge`, and the
// share of second tries, as the members counted them. Writes no file.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { get, untilAnswers } from './lib/http.mjs';
import { figures, ok, openLoop, steppedLoop } from './lib/load.mjs';
import { inRounds } from './lib/rounds.mjs';
import { createSession } from './lib/session.mjs';
import { median, pairedRatio, percentile, pooledPercentile, summary, summaryText } from './lib/statistics.mjs';
import { buildLoad, needTwoCores } from './lib/tools.mjs';
import { launch } from './peers/hostler.mjs';

const MEMBERS_APP = fileURLToPath(new URL('apps/pauses/members.mjs', import.meta.url));
const MEMBERS = 4;
const [QUICK_MS, SLOW_MS] = [5, 200];
/** The budget is 2 % of the requests. So of 5 % slow ones, three in five stay slow: that shows in the p95, and not in the p99. */
const CELLS = [{ oneOf: 20 }, { oneOf: 100 }];
const WARM_SECONDS = 2;
const MOST = 0.02;
const WAYS = { off: [], on: ['hedge = true'] };
const PAGE = { app: { short: '/page', long: '/page' }, mix: { longShare: 0, edges: 32 } };

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '6' }, seconds: { type: 'string', default: '5' }, rate: { type: 'string', default: '400' } } });
const [rounds, seconds, rate] = [values.rounds, values.seconds, values.rate].map(Number);

needTwoCores('hedging', 'the proxy');
await buildLoad();
const session = createSession();
process.on('exit', session.abandon);
try {
  const rows = await inRounds({ rounds, cells: CELLS, peers: Object.keys(WAYS) }, measure);
  for (const { oneOf } of CELLS) say(oneOf, rows.filter((row) => row.oneOf === oneOf));
} finally {
  await session.close();
}

async function measure({ round, cell: { oneOf }, peer }) {
  const sockets = Array.from({ length: MEMBERS }, (_, i) => session.path(`member${i + 1}.sock`));
  const members = session.start(process.execPath, [MEMBERS_APP, ...[oneOf, QUICK_MS, SLOW_MS].map(String), ...sockets], { name: 'members' });
  await untilAnswers(sockets[0], { path: '/count', processes: [members] });
  const pool = [`members = ${JSON.stringify(sockets.map((path) => `unix:${path}`))}`, ...WAYS[peer]];
  const { port, processes } = await launch(session, { threads: 1, pool, queueTimeout: '5s' });
  await untilAnswers(port, { path: '/page', processes });

  // The budget counts from the start, so the requests of the warm-up count as well.
  const before = await counted(sockets[0]);
  const warm = await openLoop(session, { port, ...PAGE, rate, seconds: WARM_SECONDS, seed: round + 1000 });
  const report = await steppedLoop(session, { port, ...PAGE, steps: [{ rate, seconds }], seed: round });
  const found = figures(report);
  const sent = warm.planned + found.planned;
  const extra = (await counted(sockets[0])) - before - sent;
  for (const one of [...processes, members]) await session.stop(one);
  const { planned, p50_us: p50, p99_us: p99, slowest_us: slowest } = found;
  const p95 = percentile(report.hits.map((hit) => (ok(hit) ? hit[3] : Infinity)), 95);
  return { oneOf, planned, failed: planned - found.ok, p50, p95, p99, slowest, extra: extra / sent };
}

async function counted(socket) {
  return Number((await get(socket, '/count')).body);
}

function say(oneOf, rows) {
  console.log(`\n${MEMBERS} members that answer in ${QUICK_MS} ms, and one request of ${oneOf} in ${SLOW_MS} ms; ${rate} requests a second, ${rounds} rounds of ${seconds} s`);
  for (const way of Object.keys(WAYS)) {
    const own = rows.filter(({ peer }) => peer === way);
    const middle = (name) => (median(own.map((row) => row[name])) / 1000).toFixed(1);
    const p999 = pooledPercentile(own.map(({ planned, slowest }) => ({ size: planned, largest: slowest })), 99.9) / 1000;
    const failed = own.reduce((sum, row) => sum + row.failed, 0);
    console.log(`  hedge ${way.padEnd(4)} p50 ${middle('p50')} ms, p95 ${middle('p95')} ms, p99 ${middle('p99')} ms, p99.9 ${p999.toFixed(1)} ms; second tries ${percent(own)}; ${failed} failed`);
  }
  const ratio = (name) => summaryText(pairedRatio(rows, { one: 'on', other: 'off', value: (row) => row[name] }));
  const most = Math.max(...rows.filter(({ peer }) => peer === 'on').map(({ extra }) => extra));
  console.log(`  on / off   p50 ${ratio('p50')}, p95 ${ratio('p95')}, p99 ${ratio('p99')}; second tries <= ${100 * MOST} %: ${most <= MOST ? 'met' : 'not met'}`);
}

function percent(rows) {
  const { median: middle, min, max } = summary(rows.map(({ extra }) => 100 * extra));
  return `${middle.toFixed(2)} % (${min.toFixed(2)} to ${max.toFixed(2)})`;
}
