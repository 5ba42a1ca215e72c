// node bench/watching.mjs [--rounds N] [--seconds N] measures what looking at Hostler costs: CPU per request with the live page closed and
// open, with its /metrics read each second, and the time of one read of /metrics with many routes and workers. Prints the figures, and
// writes no file.
import { parseArgs } from 'node:util';

import { get } from './lib/http.mjs';
import { cpuDuring } from './lib/procfs.mjs';
import { inRounds } from './lib/rounds.mjs';
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
const SCRAPES = 100;
const WARM_SECONDS = 1;
const APP = "require('node:http').createServer((request, response) => response.end('ok')).listen(process.env.PORT)";

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '6' }, seconds: { type: 'string', default: '3' } } });
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

/** Each begins to look, and returns what ends that. */
const WAYS = {
  closed: () => () => {},
  page: (admin) => readOn(`${admin}/live/events`),
  metrics: (admin) => repeat(1000, () => read(`${admin}/metrics`)),
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

async function cpuPerRequest() {
  const upstream = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
  const members = upstream.members.map((path) => `unix:${path}`);
  const rows = await inRounds({ rounds, peers: Object.keys(WAYS) }, async ({ peer }) => {
    const { port, admin, processes } = await start({ threads: 1, pool: [`members = ${JSON.stringify(members)}`, 'concurrency = 64'] });
    const at = { port, connections: CONNECTIONS, cpu: LOAD_CORE };
    await wrk(session, { ...at, seconds: WARM_SECONDS });
    const end = await WAYS[peer](admin);
    const { cpu_ns, requests } = await cpuDuring(processes, () => wrk(session, { ...at, seconds }));
    end();
    await stopAll(session, processes);
    return { value: cpu_ns / requests / 1000 };
  });
  for (const way of Object.keys(WAYS)) {
    const middle = median(rows.filter(({ peer }) => peer === way).map(({ value }) => value));
    const ratio = way === 'closed' ? '' : `, / closed ${summaryText(pairedRatio(rows, { one: way, other: 'closed', value: ({ value }) => value }), 3)}`;
    console.log(`${way}: CPU per request ${middle.toFixed(2)} us${ratio}`);
  }
}

/** All routes have had requests, so that each has all of its figures. */
async function scrapes() {
  const pool = [`command = ["node", "-e", ${JSON.stringify(APP)}]`, `workers = ${WORKERS}`];
  const routes = Array.from({ length: ROUTES }, (_, at) => `[[routes]]\nmatch = "/route-${at}/*"\npool = "web"\n`);
  const { port, admin, processes } = await start({ threads: null, pool, more: routes.join('\n') });
  await untilReady(admin);
  for (let at = 0; at < ROUTES; at += 1) await get(port, `/route-${at}/`);
  const times = [];
  let length = 0;
  while (times.length < SCRAPES) {
    const before = performance.now();
    length = (await read(`${admin}/metrics`)).length;
    times.push(performance.now() - before);
  }
  await stopAll(session, processes);
  console.log(`/metrics with ${ROUTES} routes and ${WORKERS} workers: ${(length / 1024).toFixed(0)} KB, median ${median(times).toFixed(2)} ms, p99 ${percentile(times, 99).toFixed(2)} ms (${SCRAPES} reads)`);
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

function repeat(millis, work) {
  const timer = setInterval(work, millis);
  return () => clearInterval(timer);
}
