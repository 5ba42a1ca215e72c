// Why a target is not met, by part and by the name of the target. RESULTS.md shows a reason only while the target is not met
// or not decided. Knows the names of the targets, no figures.

const KERNEL =
  'The relay shows what the kernel alone takes. Hostler adds parsing, checks, the queue and the log of a request; io_uring was measured and not taken (docs/decisions/0038).';
const BELOW_THE_FLOOR = `${KERNEL} The relay itself took 0.25 to 0.38 of the CPU of nginx -> HAProxy in six sittings from 2026-11-26 to 2026-11-29.`;
const OTHER_SITTINGS = `${KERNEL} The ratio differs between machines and between sittings: on 2026-11-28 it was 0.67 (0.54 .. 0.72) on an Intel Xeon (commit e88a63b2) and 1.05 (1.02 .. 1.12) on an AMD EPYC (commit bb3d4f11).`;
const CORES =
  'The workers share two cores with the proxy and the generator. With a proxy a page waits longer for a core than with two bare workers ("wait for a core" in RESULTS.md), and the ideal queue counts only what those waited.';
const RARE_PAGES =
  'Only one page in a hundred of a round is above the p99, so a few long pages at one moment move it. The peers get the same pages at the same moments, but not the same share of the two cores.';
const ROUNDS_DIFFER = 'Rounds differ by more than the target allows: other work on the machine moves them.';
const MANY_MEMBERS = 'Both have 512 slots and as many connections. What costs more with 512 members was not found; on 2026-11-29 (commit b9abf89d) the rounds of the CPU were 0.85 to 1.20.';
const KEYS = 'The key is hashed, charged twice and, while requests wait, kept in order; docs/decisions/0051 says where the instructions go.';
const COLD =
  'Code that has just started is slow. Until a worker gets several requests at once, each step from one to the next takes CPU (docs/decisions/0022). Before 2026-11-29 a worker whose requests take more than 1 ms of CPU got one at a time: on that day (commit bb3d4f11) the ratio of requests/s was 0.67.';

/** One sentence for each, true whatever the next sitting measures: figures of another sitting with its day. Remove it when the target is met for good. */
export const reasons = {
  proxy: Object.fromEntries(
    ['64 slots, c = 50', '64 slots, c = 200', '1 slot, c = 50', '1 slot, c = 200'].flatMap((cell) =>
      // The relay has no queue, so only the other cells have a target with it. A reason without a target is not shown.
      ['HAProxy', 'nginx -> HAProxy', 'the relay that parses nothing'].map((peer) => [
        `${cell}: CPU / ${peer}`,
        (cell === '64 slots, c = 50' && { HAProxy: OTHER_SITTINGS, 'nginx -> HAProxy': BELOW_THE_FLOOR }[peer]) || KERNEL,
      ]),
    ),
  ),
  scale: {
    '10 -> 10,000 routes: CPU per request': ROUNDS_DIFFER,
    '10 -> 10,000 routes: p99': ROUNDS_DIFFER,
    '4 -> 512 members: CPU per request': ROUNDS_DIFFER,
    '4 -> 512 members: p99': ROUNDS_DIFFER,
    '4 -> 512 members, 1 slot each, c = 600: CPU per request': MANY_MEMBERS,
    '4 -> 512 members, 1 slot each, c = 600: p99': MANY_MEMBERS,
    '2 threads: requests in a CPU second / those of one thread': ROUNDS_DIFFER,
    '`queue.fair`, 10,000 keys, 64 slots each, c = 50: CPU per request': KEYS,
    '`queue.fair`, 10,000 keys, 1 slot each, c = 200: CPU per request': KEYS,
  },
  tail: Object.fromEntries(
    ['0.5', '0.7', '0.9'].flatMap((load) => [
      [`load ${load}: p99 / the ideal queue`, `${CORES} ${RARE_PAGES}`],
      [`load ${load}: p99 / nginx -> HAProxy`, RARE_PAGES],
      [`load ${load}: p99 / Node's cluster`, RARE_PAGES],
      [`load ${load}: p99 of the slowdown, \`short_first\` / \`fifo\``, RARE_PAGES],
    ]),
  ),
  overload: {
    "goodput / what the workers' CPU allowed": 'A page takes more CPU while all share two busy cores, with Node\'s cluster, too: see "what the used CPU would give" in RESULTS.md.',
    'CPU of Hostler for a refusal (us)': 'It is a small difference of two large figures here, and each request of an overload takes more CPU than one before it; bench/refusals.mjs measures a refusal alone (docs/decisions/0036).',
    'seconds until p99 is back to normal': 'It is counted in whole seconds, and the rounds differ by one.',
  },
  render: {
    'batches/s, a list of 16 homes (243 elements)': 'Most of the time is React\'s, which is the same on both sides.',
    'batches/s, a button (1 element)': 'The way there and back counts here. On an Intel Xeon the rounds were 1.44 to 1.51 (commit d6de9a02); whether the processor or the program makes the difference was not measured.',
  },
  cache: {
    '100 kB, one page: CPU of a hit / the better cache': 'nginx sends the page from a file by sendfile, so the server copies no body. Hostler has it in memory, and the kernel copies it into its buffers.',
  },
  websockets: {
    '1,000 messages/s: CPU per message / nginx': ROUNDS_DIFFER,
  },
  'any-app': {
    'waits 20 ms, then computes 2 ms, 50 at once: p99 / Node\'s cluster': 'Both cores are busy all the time. A worker gets most requests while its event loop waits, so they come in groups, and the last request of a large group waits longest. A few it gets ahead (docs/decisions/0022). Before that, on 2026-11-29 (commit 805ac13c), the ratio was 1.31. With 8 at once the p99 is lower than that of Node\'s cluster.',
    'cold flood: requests/s / Node\'s cluster': COLD,
    'cold flood: p50 / Node\'s cluster': COLD,
  },
  tls: {
    'HTTP/1.1, 50 connections: CPU / the better of HAProxy and nginx': ROUNDS_DIFFER,
    'HTTP/2, 100 connections x 1 stream: CPU / the better of HAProxy and nginx': ROUNDS_DIFFER,
    'HTTP/2, 10 connections x 20 streams: CPU / the better of HAProxy and nginx': ROUNDS_DIFFER,
  },
  photos: {
    '500 at once: time / time of the upstream': 'The app alone needs as long: it shares two cores with the upstream and the generator.',
  },
  lookups: {
    '`/get_city`, 20,000 addresses: requests in a CPU second / nginx return 200': 'nginx looks nothing up. Each of 20,000 addresses leads to another part of the database.',
    'start of the process to the first response': 'It depends on how much CPU the machine has: it was 145 ms (139 .. 150) on 2026-11-27 (commit 04e77229), and 336 ms (285 .. 386) on 2026-11-29 (commit bb3d4f11).',
    'p99 at half load': 'A program that answers without a lookup has a p99 of more than 1 ms at half of its own maximum on this machine, too.',
  },
};
