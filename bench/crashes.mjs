// Measures what crashing requests cost all others: ordinary GETs in an open loop while some requests end their workers.
// node bench/crashes.mjs [--seconds 30] [--workers 2] [--rate 20] [--only WORDS] [--set KEY=VALUE ...]. The program is
// HOSTLER_BIN or target/release/hostler.
import { Agent, get, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startHostler } from '../packages/testkit/hostler.mjs';
import { median, percentile } from './lib/statistics.mjs';
import { hostlerBinary } from './lib/tools.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    workers: { type: 'string', default: '2' },
    rate: { type: 'string', default: '20' },
    set: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', default: '' },
  },
});
const [seconds, workers, rate] = [values.seconds, values.workers, values.rate].map(Number);

// Each attack: the path, the method, how many requests at a time, and how often. Each has its own path and client, so
// that the attacks share nothing but the route for `poison`.
const ATTACKS = {
  'nothing crashes': null,
  'a POST that exits, one a second': { path: '/exit', method: 'POST', count: 1, every: 1000 },
  'a GET that exits, one in 1.5 s': { path: '/exit', method: 'GET', count: 1, every: 1500 },
  'a GET that throws, one in 3 s': { path: '/throw', method: 'GET', count: 1, every: 3000 },
  'six GETs that throw, one after the other': { path: '/throw', method: 'GET', count: 1, every: 1000, most: 6 },
  'six GETs that throw, at once': { path: '/throw', method: 'GET', count: 6, every: 1000, most: 6 },
};

/** Starts a new Hostler for each attack, so that an attack does not affect the next one. */
function start() {
  const config = `[server]
[pools.app]
command = ["node", ${JSON.stringify(join(import.meta.dirname, 'apps/crashes/server.cjs'))}]
workers = ${workers}
[[routes]]
match = "/*"
pool = "app"
`;
  const options = Object.fromEntries(values.set.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
  return startHostler({ program: hostlerBinary(), config, options: { 'server.access_log': 'off', ...options } });
}

/** The times of all boots in these lines of the log, in ms. */
function bootsIn(lines) {
  return lines.flatMap((line) => /ready \(pid \d+\) in (\d+) ms/.exec(line)?.[1] ?? []).map(Number);
}

/** One ordinary request: its time, or null if it was not answered. `why` counts the reasons. */
function ask(port, agent, why = {}) {
  const began = performance.now();
  const lost = (resolve, reason) => {
    why[reason] = (why[reason] ?? 0) + 1;
    resolve(null);
  };
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, agent, path: '/page', timeout: 30_000 };
    get(options, (res) => {
      res.resume().on('end', () => {
        if (res.statusCode === 200) resolve(performance.now() - began);
        else lost(resolve, res.headers['hostler-refusal'] ?? res.statusCode);
      });
    }).on('error', (error) => lost(resolve, error.code)).on('timeout', function () { this.destroy(); });
  });
}

function crash(port, { path, method }, number) {
  // Letters instead of digits, because Hostler treats path segments that differ only in digits as the same.
  const own = [...String(number)].map((digit) => 'abcdefghij'[digit]).join('');
  const localAddress = `127.0.${1 + (number >> 7)}.${1 + (number & 127)}`;
  const options = { host: '127.0.0.1', port, localAddress, path: `/${own}${path}`, method, agent: false };
  const req = request(options, (res) => res.resume());
  req.on('error', () => {}).end();
}

async function measure(attack) {
  const hostler = await start();
  const { port } = hostler;
  const atStart = bootsIn(hostler.log).length;
  const agent = new Agent({ keepAlive: true, maxSockets: 200 });
  for (let i = 0; i < 20; i += 1) await ask(port, agent); // warm-up
  const [asked, why] = [[], {}];
  let crashes = 0;
  const began = performance.now();
  const due = (every) => Math.floor((performance.now() - began) / every);
  while (due(1000) < seconds) {
    while (asked.length <= due(1000 / rate)) asked.push(ask(port, agent, why));
    if (attack) {
      const wanted = Math.min(attack.most ?? Infinity, (due(attack.every) + 1) * attack.count);
      while (crashes < wanted) crash(port, attack, crashes++);
    }
    await pause(5);
  }
  const times = (await Promise.all(asked)).map((time) => time ?? Infinity);
  agent.destroy();
  await hostler.stop();
  const boots = bootsIn(hostler.log).slice(atStart);
  const answered = times.filter(Number.isFinite);
  return {
    refused: Object.entries(why).map(([reason, count]) => `${count} ${reason}`).join(', '),
    answered: `${((100 * answered.length) / times.length).toFixed(1)} % of ${times.length}`,
    median: `${median(times).toFixed(1)} ms`,
    p99: `${percentile(times, 99).toFixed(0)} ms`,
    longest: `${Math.max(...answered).toFixed(0)} ms`,
    crashes,
    boots: boots.length,
    'a boot': boots.length ? `${median(boots)} ms, longest ${Math.max(...boots)} ms` : '',
  };
}

const rows = {};
for (const [name, attack] of Object.entries(ATTACKS).filter(([name]) => name.includes(values.only))) rows[name] = await measure(attack);
console.table(rows);
