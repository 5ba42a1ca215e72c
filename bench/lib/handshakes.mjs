// Runs the generator of TLS connections (bench/load/handshakes). Knows the generator, not the server under test.
import { handshakesBinary } from './tools.mjs';

/** Closed loop with `clients` connections at once, each with a handshake and one request. `resume`: each client resumes its last session. */
export async function handshakes(session, { port, path = '/rooms/48213', clients, seconds, resume, cpu }) {
  const args = ['-at', `127.0.0.1:${port}`, '-path', path, '-time', `${seconds}s`, '-clients', String(clients), ...(resume ? ['-resume'] : [])];
  const { connections, resumed, took_us, failures = {} } = JSON.parse(await session.run(handshakesBinary, args, { cpu, name: 'handshakes' }));
  return { requests: connections, resumed, seconds: took_us / 1e6, errors: failures };
}
