// A proxy between a cache and its memcached. The file MODE sets what happens to the bytes: fine, slow, garbled, hung or
// gone. Knows no items.
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';

const SLOW_MS = 1_000;
const LOOK_MS = 20;
const open = new Set();
let mode = 'fine';

const server = createServer((client) => {
  if (mode === 'gone') return client.destroy();
  const memcached = connect(Number(process.env.MEMCACHED), '127.0.0.1');
  for (const [one, other] of [[client, memcached], [memcached, client]]) {
    open.add(one);
    one.on('error', () => {}).on('close', () => {
      open.delete(one);
      other.destroy();
    });
  }
  client.on('data', (chunk) => memcached.write(chunk));
  memcached.on('data', (chunk) => pass(chunk, client));
});
server.listen(Number(process.env.PORT), '127.0.0.1');
setInterval(look, LOOK_MS);

function pass(chunk, client) {
  if (mode === 'hung') return;
  if (mode === 'slow') setTimeout(() => client.write(chunk), SLOW_MS);
  else client.write(mode === 'garbled' ? garbled(chunk) : chunk);
}

/** Changes some bytes, line ends and lengths among them. */
function garbled(chunk) {
  return Buffer.from(chunk).map((byte, i) => (i % 7 === 3 ? byte ^ 0x2a : byte));
}

function look() {
  mode = readFileSync(process.env.MODE, 'utf8').trim();
  if (mode === 'gone') open.forEach((socket) => socket.destroy());
}
