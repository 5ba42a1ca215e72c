// node bench/training.mjs loads Hostler with the features that no other part of the benchmarks uses, for the profile of the release build
// (npm run pgo): fair queues, the log, conditions, rate limits, compression, static files, Early Hints, hedging. Measures nothing.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { untilAnswers } from './lib/http.mjs';
import { freePort, createSession } from './lib/session.mjs';
import { hostlerBinary, buildUpstream, installPackages, needTwoCores } from './lib/tools.mjs';
import { wrk } from './lib/wrk.mjs';
import { startMembers } from './peers/members.mjs';
import { LOAD_CORE, MEMBERS, PROBE, PROXY_CORE } from './scenarios/proxy.mjs';

const SECONDS = 2;
const KEYS = 2000;
/** The page of the app below: as long as one of a shop, so that an encoder has work. */
const APP = `const page = '<!doctype html>' + Array.from({ length: 300 }, (_, i) => '<li class="room" data-price="' + i * 7919 % 400 + '">A room ' + i * 104729 % 1000 + '</li>').join('\\n');
require('node:http').createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/html', link: '</app.css>; rel=preload; as=style' }).end(page);
}).listen(process.env.PORT)`;
const AGENTS = ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 'curl/8.14.1', 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0'];
const ENCODINGS = ['zstd', 'br', 'gzip', 'identity'];

needTwoCores('training', 'the proxy');
await installPackages(['wrk', 'nghttp2-client']);
await buildUpstream();
const session = createSession();
process.on('exit', session.abandon);
try {
  const { members } = await startMembers(session, { count: MEMBERS, cpu: LOAD_CORE, probe: PROBE });
  const port = await start(members.map((path) => `unix:${path}`));
  const load = (path, { connections = 50, seconds = SECONDS, ...more } = {}) => wrk(session, { port, path, connections, seconds, cpu: LOAD_CORE, ...more });
  const fields = (path, field, values) => load(path, { many: { requests: session.write('requests', values.map((value) => `${path} ${value}\n`).join('')), field } });
  const keys = Array.from({ length: KEYS }, (_, i) => `key-${i * 7919}`);

  for (const connections of [2, 50, 200]) await load(PROBE, { connections, seconds: 1 });
  await fields(PROBE, 'X-Key', keys);
  await fields(PROBE, 'Cookie', keys.map((key) => `tenant=${key}`));
  await fields(PROBE, 'X-Forwarded-For', keys.map((_, i) => `198.51.${i >> 8}.${i & 255}`));
  // wrk-many.lua ends a value at a space.
  await fields(PROBE, 'User-Agent', AGENTS.map((agent) => agent.replaceAll(' ', '_')));
  await fields(`${PROBE}?preview=1`, 'Sec-Purpose', ['prefetch', 'none']);
  await fields('/limited/1', 'X-Key', keys);
  await fields('/short/1', 'X-Key', keys);
  await fields('/page/1', 'Accept-Encoding', ENCODINGS);
  await fields('/static/rooms.json', 'Accept-Encoding', ENCODINGS);
  await fields('/static/rooms.json', 'Range', ['bytes=0-99', 'bytes=100-']);
  for (const path of ['/static/photo.bin', '/own', '/moved/1', '/nowhere']) await load(path, { seconds: 1 });
  const streams = ['-t', '1', '-c', '10', '-m', '20', '-D', `${SECONDS}`, '-H', 'sec-fetch-mode: navigate', '-H', 'accept-encoding: br, gzip'];
  for (const path of ['/page/1', PROBE]) await session.run('h2load', [...streams, `http://127.0.0.1:${port}${path}`], { cpu: LOAD_CORE });
} finally {
  await session.close();
}

async function start(members) {
  const port = await freePort();
  const files = session.path('public');
  mkdirSync(join(files, 'static'), { recursive: true });
  writeFileSync(join(files, 'static', 'rooms.json'), JSON.stringify(Array.from({ length: 500 }, (_, id) => ({ id, title: `A room ${(id * 7919) % 1000}` }))));
  writeFileSync(join(files, 'static', 'photo.bin'), Buffer.alloc(100 * 1024, 7));
  const file = session.write('hostler.toml', configuration({ port, members, files }));
  const started = session.start(hostlerBinary(), ['start', '-c', file], { cpu: PROXY_CORE, name: 'hostler' });
  for (const path of [PROBE, '/page/1']) await untilAnswers(port, { path, processes: [started] });
  return port;
}

function configuration({ port, members, files }) {
  const list = JSON.stringify(members);
  return `[server]
listen = ["127.0.0.1:${port}"]
admin = "off"
threads = 1
access_log = "json"
trusted_proxies = ["127.0.0.1"]
compress = { min_size = 100 }

[pools.fair]
members = ${list}
concurrency = 8
rate_limit = { worker_time = "1h", per = "1m", key = "header:X-Key" }

[pools.fair.queue]
limit = 10000
fair = ["header:X-Key", "cookie:tenant", "crawler", "client"]
low = ["prefetch", "crawler"]

[pools.short]
members = ${list}
concurrency = 8
hedge = true

[pools.short.queue]
limit = 10000
order = "short_first"

[pools.app]
command = ["node", "-e", ${JSON.stringify(APP)}]
workers = 1

[[routes]]
match = "/rooms/*"
when = { method = ["GET", "POST"], query = { preview = true }, cookie = { session = "7c9e*" }, not = { header = { "X-Beta" = "1" } } }
pool = "fair"
priority = "low"

[[routes]]
match = "/rooms/*"
pool = "fair"

[[routes]]
match = "/limited/*"
pool = "fair"
rate_limit = { requests = 600, per = "1m", key = "header:X-Key" }

[[routes]]
match = "/short/*"
pool = "short"

[[routes]]
match = "/page/*"
pool = "app"
early_hints = "learn"

[[routes]]
match = "/static/*"
static = ${JSON.stringify(files)}

[[routes]]
match = "/own"
respond = { status = 200, body = "own" }

[[routes]]
match = "/moved/*"
redirect = "/rooms/1"
`;
}
