// Finds a port for an app that opens one by itself.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';

/** Below those that the system gives to whoever asks for any (from 32768 on): one of these nobody gets by chance before it is used. */
const [LOWEST, BEYOND] = [10_000, 32_768];

export async function freePort() {
  for (;;) {
    const server = net.createServer();
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
