// A free TCP port, for programs that must know their port before they start.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that the system assigns (from 32768 on), so that no other process gets one of these by chance. */
const [LOWEST, BEYOND] = [10_000, 32_768];

export async function freePort() {
  for (;;) {
    const server = createServer();
    try {
      server.listen(randomInt(LOWEST, BEYOND), '127.0.0.1');
      await once(server, 'listening');
    } catch (error) {
      if (error.code === 'EADDRINUSE') continue;
      throw error;
    }
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
  }
}
