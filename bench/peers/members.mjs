// The members behind the proxies of the bench (bench/upstream): one process on core 1 that does almost no work. Knows no
// proxy.
import { untilAnswers } from '../lib/http.mjs';
import { freePort } from '../lib/session.mjs';
import { upstreamBinary } from '../lib/tools.mjs';

/** `count` Unix sockets for proxies, and a port for requests without a proxy. All of them answer with `body`. */
export async function startMembers(session, { count, cpu, probe }) {
  const port = await freePort();
  const members = Array.from({ length: count }, (_, i) => session.path(`member${i + 1}.sock`));
  const addresses = [...members.map((path) => `unix:${path}`), `127.0.0.1:${port}`];
  const started = session.start(upstreamBinary, addresses, { cpu, name: 'upstream' });
  const { body } = await untilAnswers(port, { path: probe, processes: [started] });
  return { started, members, port, body };
}
