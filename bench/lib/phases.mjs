// Figures of an open loop over time: the results of a phase, of each second, and the time until recovery. Knows the rows
// of the load generator, not the server under test.
import { ok } from './load.mjs';
import { percentile } from './statistics.mjs';

const US = 1e6;
const started = ([, , , , at]) => at;
const ended = ([, , , latency, at]) => at + latency;
const latencies = (hits) => hits.map(([, , , latency]) => latency);
const within = (from, to, when) => (hit) => when(hit) >= from * US && when(hit) < to * US;

/** The phase between two times: the requests started in it, and the responses completed in it, whenever they were started. */
export function phase(hits, { from, to }) {
  const asked = hits.filter(within(from, to, started));
  const answered = asked.filter(ok);
  const refused = asked.filter(([, status]) => status === 503);
  const done = hits.filter(ok).filter(within(from, to, ended));
  return {
    asked: asked.length,
    answered: answered.length,
    refused: refused.length,
    failed: asked.length - answered.length - refused.length,
    completed: done.length,
    completed_long: done.filter(([long]) => long === 1).length,
    // People do not wait longer than this for a page, so later responses are useless.
    completed_in_1s: done.filter(([, , , latency]) => latency <= US).length,
    p50_us: percentile(latencies(answered), 50),
    p99_us: percentile(latencies(answered), 99),
    refusal_p50_us: percentile(latencies(refused), 50),
    refusal_p99_us: percentile(latencies(refused), 99),
  };
}

/** p99 of the requests started in each second. A refusal or a failure counts as a response that never came. */
export function bySecond(hits, seconds) {
  const each = Array.from({ length: seconds }, () => []);
  for (const hit of hits) {
    const second = Math.floor(started(hit) / US);
    if (second < seconds) each[second].push(ok(hit) ? hit[3] : Infinity);
  }
  return each.map((values) => percentile(values, 99));
}

/** How many seconds after `end` the first second is no worse than the worst of `normal`. Infinity: none is. */
export function recovery(p99BySecond, { normal: [from, to], end }) {
  const worst = Math.max(...p99BySecond.slice(from, to));
  const after = p99BySecond.slice(end).findIndex((p99) => p99 <= worst);
  return after === -1 ? Infinity : after;
}

/** The requests started during `spans` (in milliseconds from the beginning), and those started between them. */
export function around(hits, spans) {
  const isDuring = (hit) => spans.some(({ from, to }) => started(hit) >= from * 1000 && started(hit) < to * 1000);
  const waiting = (some) => {
    const times = some.map((hit) => (ok(hit) ? hit[3] : Infinity));
    return { asked: some.length, p50_us: percentile(times, 50), p99_us: percentile(times, 99) };
  };
  const refused = hits.filter(([, status]) => status === 503).length;
  return {
    asked: hits.length,
    refused,
    failed: hits.filter((hit) => !ok(hit)).length - refused,
    during: waiting(hits.filter(isDuring)),
    between: waiting(hits.filter((hit) => !isDuring(hit))),
  };
}
