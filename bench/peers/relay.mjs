// The floor: a relay in C that parses nothing (bench/relay), in front of the members. Knows no HTTP, so it has neither a
// queue nor limits.
import { untilAnswers } from '../lib/http.mjs';
import { freePort } from '../lib/session.mjs';
import { relayBinary } from '../lib/tools.mjs';

/**
 * In microseconds: with it the relay finds about 8 requests in a turn at 50 connections, as many as a busy proxy does. Without a
 * rest it is woken up 0.2 to 0.3 times for each request, and needs a third more CPU for it: too high a floor.
 */
export const REST_US = 100;

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
