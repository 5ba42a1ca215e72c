// node bench/hints.mjs [--requests N] [--rate N] measures how long a browser waits for a `103 Early Hints` while the only worker is busy
// and the queue is long, and how long for its page. Beside it stands a response that Hostler gives itself, which shows what the client
// and the connection take. Prints the times, and writes no file.
import { once } from 'node:events';
import { connect } from 'node:http2';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { createSession } from './lib/session.mjs';
import { percentile } from './lib/statistics.mjs';
import { installPackages, needTwoCores } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { mulberry32 } from './lib/zipf.mjs';
import { untilAnswers } from './lib/http.mjs';
import { launch } from './peers/hostler.mjs';

/** Requests of others: one has the worker, and the rest stand in the queue. */
const WAITING = 64;
const PAGE_MS = 2;
const LINK = '</app.css>; rel=preload; as=style';
const APP = `require('node:http').createServer((request, response) => setTimeout(() => {
  response.writeHead(200, { 'content-type': 'text/html', link: '${LINK}' }).end('<!doctype html>');
}, ${PAGE_MS})).listen(process.env.PORT)`;
/** Hostler has learnt a link after 8 responses. */
const TEACH = 20;
const LIMIT_MS = 1;

const { values } = parseArgs({ options: { requests: { type: 'string', default: '4000' }, rate: { type: 'string', default: '200' } } });
const [requests, rate] = [Number(values.requests), Number(values.rate)];

needTwoCores('hints', 'the proxy');
await installPackages(['wrk']);
const session = createSession();
process.on('exit', session.abandon);
try {
  const port = await start();
  const browser = connect(`http://127.0.0.1:${port}`);
  await once(browser, 'connect');
  for (let i = 0; i < TEACH; i += 1) await ask(browser, '/page');
  // Longer than the measurement: the others are there before its first request and after its last one.
  const others = wrk(session, { port, connections: WAITING, seconds: Math.ceil((2 * requests) / rate) + 4 });
  await pause(1000);
  const found = await atRandomTimes(['/page', '/own'], browser);
  browser.close();
  const { errors } = await others;
  const [pages, own] = ['/page', '/own'].map((wanted) => found.filter(({ path }) => path === wanted));
  say({ own, pages, errors });
} finally {
  await session.close();
}

async function start() {
  const pool = [`command = ["node", "-e", ${JSON.stringify(APP)}]`, 'workers = 1', 'concurrency = 1'];
  const routes = '[[routes]]\nmatch = "*"\npool = "web"\nearly_hints = "learn"\n\n[[routes]]\nmatch = "/own"\nrespond = { status = 200, body = "own" }\n';
  const { port, processes } = await launch(session, { threads: 1, pool, queueTimeout: '30s', more: routes });
  await untilAnswers(port, { path: '/page', processes });
  return port;
}

/** Sends so many requests for each path at Poisson times, whether or not those before have their responses. */
async function atRandomTimes(paths, browser) {
  const random = mulberry32(1);
  const found = [];
  const began = performance.now();
  for (let i = 0, at = 0; i < paths.length * requests; i += 1) {
    at -= (1000 * Math.log(1 - random())) / rate;
    await pause(Math.max(0, at - (performance.now() - began)));
    found.push(ask(browser, paths[i % paths.length]));
  }
  return Promise.all(found);
}

/** The times from the request to its 103 and to its response, in milliseconds. A browser that opens a page sends this field. */
async function ask(browser, path) {
  const stream = browser.request({ ':path': path, 'sec-fetch-mode': 'navigate' });
  const sent = performance.now();
  let hint = null;
  stream.on('headers', ({ ':status': status, link }) => {
    if (status === 103 && link === LINK) hint = performance.now() - sent;
  });
  const [{ ':status': status }] = await once(stream, 'response');
  const final = performance.now() - sent;
  await once(stream.resume(), 'end');
  return { path, hint, final, status };
}

function say({ own, pages, errors }) {
  const hinted = pages.filter(({ hint }) => hint !== null).map(({ hint }) => hint);
  const bad = pages.filter(({ status }) => status !== 200).length;
  const times = (list) => `p50 ${percentile(list, 50).toFixed(2)} ms, p99 ${percentile(list, 99).toFixed(2)} ms, p99.9 ${percentile(list, 99.9).toFixed(2)} ms`;
  console.log(`HTTP/2, ${pages.length} requests for a page at random times, in ${2 * requests} that come ${rate} a second; the worker needs ${PAGE_MS} ms for a page, and ${WAITING} other requests are there`);
  console.log(`  103 Early Hints              ${times(hinted)}: p99 < ${LIMIT_MS} ms is ${percentile(hinted, 99) < LIMIT_MS ? 'met' : 'not met'}`);
  console.log(`  the page                     ${times(pages.map(({ final }) => final))}`);
  console.log(`  a response of Hostler's own  ${times(own.map(({ final }) => final))} (no queue, no worker: what the client takes)`);
  console.log(`  ${pages.length - hinted.length} without a 103, ${bad} without 200; of the others ${Object.values(errors).reduce((sum, count) => sum + count, 0)} failed`);
}
