// The floor: a relay in C that parses nothing (bench/relay), in front of the members. Knows no HTTP, so it has neither a
// queue nor limits.
import { untilAnswers } from '../lib/http.mjs';
import { freePort } from '../lib/session.mjs';
import { relayBinary } from '../lib/tools.mjs';

/** In microseconds: the rest with the least CPU for a request. */
export const REST_US = 50;

export const relay = {
  title: 'a relay in C that parses nothing: what the kernel takes',
  packages: [],

  async start(session, { members, cpu, probe }) {
    const port = await freePort();
    const started = session.start(relayBinary, [String(port), String(REST_US), ...members], { cpu, name: 'relay' });
    await untilAnswers(port, { path: probe, processes: [started] });
    return { port, processes: [started] };
  },
};
