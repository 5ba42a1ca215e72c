// Measures the memory of an idle tunnel in Hostler: opens WebSockets through it to a member that only keeps them open.
// node bench/tunnels.mjs [9900]. The program is HOSTLER_BIN or target/release/hostler. Each tunnel needs two of Hostler's
// file descriptors.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startHostler } from '../packages/testkit/hostler.mjs';
import { residentBytes } from './lib/procfs.mjs';
import { hostlerBinary } from './lib/tools.mjs';

const count = Number(process.argv[2] ?? 9_900);
const folder = mkdtempSync(join(tmpdir(), 'hostler-tunnels-'));
const handshake = 'GET /chat HTTP/1.1\r\nHost: bench.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
  + 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n'
  + 'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n'
  + 'Origin: http://bench.test\r\nAccept-Language: en-GB,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n\r\n';
const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
  + 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';

const member = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.write(switched)));
await once(member.listen({ path: join(folder, 'member.sock'), backlog: 4096 }), 'listening');
const config = `[server]
max_connections = ${count + 100}
drain_timeout = "1s"
[pools.app]
members = ["unix:${join(folder, 'member.sock')}"]
max_tunnels = ${count}
`;
const hostler = await startHostler({ program: hostlerBinary(), config, options: { 'server.access_log': 'off' } });

const open = async () => {
  const socket = connect(hostler.port, '127.0.0.1');
  socket.on('error', (error) => console.error(error.message));
  socket.write(handshake);
  const [head] = await once(socket, 'data');
  if (!head.toString().startsWith('HTTP/1.1 101 ')) throw new Error(`no tunnel: ${head}`);
  return socket;
};

const sockets = [await open()];
await pause(200);
const before = residentBytes(hostler.pid);
while (sockets.length < count) {
  sockets.push(...(await Promise.all(Array.from({ length: Math.min(50, count - sockets.length) }, open))));
}
await pause(500);
const after = residentBytes(hostler.pid);
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
console.log(`${count} idle tunnels: ${mib(before)} before, ${mib(after)} after: ${Math.round((after - before) / (count - 1))} bytes each`);

sockets.forEach((socket) => socket.destroy());
await hostler.stop();
member.close();
rmSync(folder, { recursive: true });
process.exit();
