// node bench/watching.mjs [--rounds N] [--seconds N] measures what looking at Hostler costs: CPU per request with the live page closed and
// open, with its /metrics read each second, and the time of one read of /metrics with many routes and workers. Prints the figures, and
// writes no file.
import { once } from 'node:events';
import { Agent, get as request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { get } from './lib/http.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { inTurn } from './lib/rounds.mjs';
import { createSession, freePort } from './lib/session.mjs';
import { median, pairedRatio, percentile, summaryText } from './lib/statistics.mjs';
import { buildUpstream, hostlerBinary, installPackages, needTwoCores } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { configuration } from './peers/hostler.mjs';
import { startMembers } from './peers/members.mjs';
import { stopAll } from './peers/renders.mjs';
import { LOAD_CORE, MEMBERS, PROBE, PROXY_CORE } from './scenarios/proxy.mjs';

const CONNECTIONS = 50;
const ROUTES = 200;
const WORKERS = 20;
const SCRAPES = 300;
/** Reads before those that count. */
const FIRST_SCRAPES = 30;
/** In so many turns each of the three ways has each place and each neighbour equally often. */
const TURNS = 6;
/** After a way begins or ends, until it is as it stays. */
const SETTLE_MS = 300;
const TARGETS = { page: 1.02, scrapeMs: 5 };
const WARM_SECONDS = 1;
const APP = "require('node:http').createServer((request, response) => response.end('ok')).listen(process.env.PORT)";

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '2' } } });
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

/** Each begins to look, and returns what ends that. */
const WAYS = {
  closed: () => () => {},
  page: (admin) => readOn(`${admin}/live/events`),
  metrics: (admin) => eachSecond(() => read(`${admin}/metrics`)),
};

needTwoCores('proxy', 'the proxy');
await installPackages(['wrk']);
await buildUpstream();
const session = createSession();
process.on('exit', session.abandon);
try {
  await cpuPerRequest();
  await scrapes();
} finally {
  await session.close();
}

/** The ways take turns within one process: two processes of one build differ by more than the target allows. */
async function cpuPerRequest() {
  const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
  const members = upstream.members.map((path) => `unix:${path}`);
  const rows = [];
  for (let round = 0; round < rounds; round += 1) {
    const { port, admin, processes } = await start({ threads: 1, pool: [`members = ${JSON.stringify(members)}`, 'concurrency = 64'] });
    const at = { port, connections: CONNECTIONS, cpu: LOAD_CORE };
    await wrk(session, { ...at, seconds: WARM_SECONDS });
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (const peer of inTurn(Object.keys(WAYS), turn)) {
        const end = await WAYS[peer](admin);
        await pause(SETTLE_MS);
        const { cpu_ns, requests } = await cpuDuring(processes, () => wrk(session, { ...at, seconds }));
        end();
        await pause(SETTLE_MS);
        rows.push({ round: round * TURNS + turn, peer, value: cpu_ns / requests / 1000 });
      }
    }
    await stopAll(session, processes);
  }
  await session.stop(upstream.started);
  for (const way of Object.keys(WAYS)) {
    const middle = median(rows.filter(({ peer }) => peer === way).map(({ value }) => value));
    const ratio = pairedRatio(rows, { one: way, other: 'closed', value: ({ value }) => value });
    const target = TARGETS[way] ? `; <= ${TARGETS[way]}: ${ratio.median <= TARGETS[way] ? 'met' : 'not met'}` : '';
    console.log(`${way}: CPU per request ${middle.toFixed(2)} us${way === 'closed' ? '' : `, / closed ${summaryText(ratio, 3)}${target}`}`);
  }
}

/** All routes have had requests, so that each has all of its figures. */
async function scrapes() {
  const pool = [`command = ["node", "-e", ${JSON.stringify(APP)}]`, `workers = ${WORKERS}`];
  const routes = Array.from({ length: ROUTES }, (_, at) => `[[routes]]\nmatch = "/route-${at}/*"\npool = "web"\n`);
  const { port, admin, processes } = await start({ threads: null, pool, more: routes.join('\n') });
  await untilReady(admin);
  for (let at = 0; at < ROUTES; at += 1) await get(port, `/route-${at}/`);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < FIRST_SCRAPES; i += 1) await scrape(admin, agent);
  const times = [];
  let bytes = 0;
  const { cpu_ns } = await cpuDuring(processes, async () => {
    while (times.length < SCRAPES) {
      const before = performance.now();
      bytes = await scrape(admin, agent);
      times.push(performance.now() - before);
    }
  });
  agent.destroy();
  await stopAll(session, processes);
  const met = median(times) < TARGETS.scrapeMs ? 'met' : 'not met';
  console.log(`/metrics with ${ROUTES} routes and ${WORKERS} workers: ${(bytes / 1024).toFixed(0)} KB, median ${median(times).toFixed(2)} ms, p99 ${percentile(times, 99).toFixed(2)} ms (${SCRAPES} reads); < ${TARGETS.scrapeMs} ms: ${met}`);
  console.log(`  CPU of Hostler and its workers for a read ${(cpu_ns / SCRAPES / 1e6).toFixed(2)} ms`);
}

/** Reads /metrics as Prometheus does, over a connection that stays open. Returns the bytes: their text is not of interest here, and `fetch` would take longer than Hostler. */
async function scrape(admin, agent) {
  const [answer] = await once(request(`${admin}/metrics`, { agent }), 'response');
  if (answer.statusCode !== 200) throw new Error(`/metrics: ${answer.statusCode}`);
  let bytes = 0;
  for await (const piece of answer) bytes += piece.length;
  return bytes;
}

/** Hostler with an admin listener, on the proxy's core if it has one thread. */
async function start({ threads, ...settings }) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const file = session.write('hostler.toml', configuration({ port, admin: `127.0.0.1:${adminPort}`, threads, queueTimeout: '5s', ...settings }));
  const started = session.start(hostlerBinary(), ['start', '-c', file], { cpu: threads === 1 ? PROXY_CORE : undefined, name: 'hostler' });
  const admin = `http://127.0.0.1:${adminPort}`;
  await untilReady(admin);
  return { port, admin, processes: [started] };
}

async function untilReady(admin) {
  const until = Date.now() + 60_000;
  for (;;) {
    try {
      if ((await fetch(`${admin}/health/ready`)).ok) return;
    } catch {
      // It does not listen yet.
    }
    if (Date.now() > until) throw new Error('Hostler is not ready after 60 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function read(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.text();
}

/** Reads a stream that does not end, as a browser does. */
async function readOn(url) {
  const stop = new AbortController();
  const answer = await fetch(url, { signal: stop.signal });
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  (async () => {
    for await (const piece of answer.body) void piece;
  })().catch(() => {});
  return () => stop.abort();
}

/** The first time after half a second, so that a measurement of whole seconds has as many. */
function eachSecond(work) {
  let timer = setTimeout(() => {
    void work();
    timer = setInterval(work, 1000);
  }, 500 - SETTLE_MS);
  return () => clearInterval(timer);
}
