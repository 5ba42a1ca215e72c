// Writes each request that it gets into a diary, with how many it has at once, and answers as the path says:
// /wait or /spin (the event loop free or busy) for ?ms=50 or ?until=FILE, then ?size=1000 bytes; /exit, /half (of an answer, then
// exit) and /destroy (the connection) do not. Has never heard of Hostler.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');

const inFolder = (name) => path.join(process.env.TEST_FOLDER, name);
const worker = Number(process.env.NODE_APP_INSTANCE) + 1;
let running = 0;

const ways = {
  '/wait': async (isOver) => {
    while (!isOver()) await pause(2);
  },
  '/spin': (isOver) => {
    while (!isOver());
  },
  '/exit': () => process.exit(1),
  '/half': (_, req, res) => new Promise(() => res.write('half', () => setImmediate(() => process.exit(1)))),
  '/destroy': (_, req) => new Promise(() => req.socket.destroy()),
};

/** Whether a request has taken long enough. */
function end({ ms = '0', until }) {
  if (until) return () => fs.existsSync(inFolder(until));
  const over = Date.now() + Number(ms);
  return () => Date.now() >= over;
}

const server = http.createServer(async (req, res) => {
  running += 1;
  const entry = { worker, pid: process.pid, method: req.method, url: req.url, running };
  fs.appendFileSync(inFolder('diary'), `${JSON.stringify(entry)}\n`);
  const url = new URL(req.url, 'http://app');
  const query = Object.fromEntries(url.searchParams);
  let received = 0;
  for await (const chunk of req) received += chunk.length;
  await ways[url.pathname]?.(end(query), req, res);
  running -= 1;
  res.setHeader('content-type', 'application/json');
  res.end(query.size ? 'x'.repeat(Number(query.size)) : JSON.stringify({ worker, pid: process.pid, received }));
});
server.listen(3000);
