// Echoes what it is sent, and dies, hangs or grows as the path says. Notes each request in a diary with how many it has at once:
// more than CHAOS_SLOTS is a violation. With CHAOS_BROKEN it does not start. Has never heard of Hostler.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');

if (process.env.CHAOS_BROKEN) throw new Error('broken by the chaos test');

const diary = path.join(process.env.TEST_FOLDER, 'diary');
const slots = Number(process.env.CHAOS_SLOTS);
const hoard = [];
let running = 0;

// One short write with O_APPEND: whole lines, although other processes write too, and complete if this one is killed right after.
const note = (entry) => fs.appendFileSync(diary, `${JSON.stringify({ pid: process.pid, ...entry })}\n`);

const pattern = (id, size) => Buffer.alloc(size, `${id} `);

const ways = {
  async echo({ id, query, body, method }, res) {
    await pause(Number(query.ms));
    if (query.spin) for (const over = Date.now() + Number(query.spin); Date.now() < over; );
    res.setHeader('content-type', 'application/octet-stream');
    res.setHeader('x-echo', `${method} ${id}`);
    return body.length > 0 ? body : pattern(id, Number(query.size));
  },
  exit() {
    process.exit(1);
  },
  throw() {
    setImmediate(() => {
      throw new Error('thrown by the chaos test');
    });
    return new Promise(() => {});
  },
  /** A rejection without a handler: Node ends the process. */
  reject() {
    Promise.reject(new Error('rejected by the chaos test'));
    return new Promise(() => {});
  },
  /** More than the heap may hold: V8 aborts the process. */
  heap() {
    for (const all = []; ; ) all.push(new Array(100_000).fill({}));
  },
  /** Half of an answer, and then the end. */
  half({ id }, res) {
    res.writeHead(200, { 'content-length': 2000 });
    res.write(pattern(id, 1000), () => process.exit(1));
    return new Promise(() => {});
  },
  loop() {
    for (;;);
  },
  leak({ id, query }) {
    hoard.push(Buffer.alloc(Number(query.mib) << 20, 1));
    return pattern(id, 10);
  },
};

async function answer(req, res) {
  const id = req.headers['x-request-id'];
  const url = new URL(req.url, 'http://app');
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const asked = { id, method: req.method, query: Object.fromEntries(url.searchParams), body: Buffer.concat(chunks) };
  const way = url.pathname.split('/').at(-1);
  return ways[way](asked, res);
}

http.createServer((req, res) => {
  running += 1;
  note({ id: req.headers['x-request-id'], ...(running > slots ? { violation: running } : {}) });
  const finished = (body) => {
    running -= 1;
    res.end(body);
  };
  // What fails here is the connection, which Hostler has given up.
  answer(req, res).then(finished, () => finished());
}).listen(3000);
