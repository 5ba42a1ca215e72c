// One small app for loads of every kind: `?wait=20` waits 20 ms, as for a database, `?compute=20` uses 20 ms of CPU time, and
// `/events` is an event stream. Knows nothing of the program in front of it.
const http = require('node:http');

const EVENT_EVERY_MS = 100;

http.createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://app');
  if (pathname === '/events') return stream(response);
  const [wait, compute] = ['wait', 'compute'].map((name) => Number(searchParams.get(name) ?? 0));
  const answer = () => {
    useCpu(compute);
    response.setHeader('content-type', 'text/plain').end('done\n');
  };
  if (wait > 0) setTimeout(answer, wait);
  else answer();
}).listen(process.env.PORT ?? 3000, () => console.log('up')); // the bench waits for this line

/** CPU time, not time: beside another busy process the work stays the same and takes longer, as real work does. */
function useCpu(ms) {
  if (ms === 0) return;
  const before = process.cpuUsage();
  for (let used = 0; used < ms * 1000;) {
    for (let i = 0; i < 20_000; i += 1) Math.sqrt(i);
    const { user, system } = process.cpuUsage(before);
    used = user + system;
  }
}

function stream(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const send = () => response.write(`data: ${Date.now()}\n\n`);
  send();
  const timer = setInterval(send, EVENT_EVERY_MS);
  response.on('close', () => clearInterval(timer));
}
