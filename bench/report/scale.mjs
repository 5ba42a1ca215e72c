// The scale section of RESULTS.md. Knows the rows of results/scale.json and the targets set for them.
import { median, pairedRatio } from '../lib/statistics.mjs';
import { AGREED, CPU, agreed, number, origin, rounds, spread, table, targetTable, troubles } from './format.mjs';

/** More of something may cost so much more; threads must be so near to linear. */
const MORE = 1.1;
const LINEAR = 0.9;
/** What a fair queue may cost. */
const FAIR = 1.03;

export function scaleSection(result) {
  const { settings, plain, variants, rows, titles } = result;
  const of = (name) => ({ ...plain, ...variants[name] });
  const compared = Object.keys(variants).filter((name) => variants[name].than);
  const ratio = (name, value) => pairedRatio(rows, { one: name, other: variants[name].than, value });
  const isThreads = (name) => of(name).threads > 1;
  const targets = compared.flatMap((name) => {
    const line = (what, found, wanted, holds) => [`${titleOf(name, of)}: ${what}`, spread(found, 2), wanted, agreed(found, holds)];
    if (isThreads(name)) return [line('requests in a CPU second / those of one thread', ratio(name, perCpuSecond), `>= ${LINEAR}`, (share) => share >= LINEAR)];
    if (of(name).fair) return [line('CPU per request', ratio(name, cpu), `<= ${FAIR}`, (share) => share <= FAIR)];
    return [['CPU per request', cpu], ['p99', p99]].map(([what, value]) => line(what, ratio(name, value), `<= ${MORE}`, (share) => share <= MORE));
  });
  const hasKeys = Object.keys(variants).some((name) => of(name).keys);
  const figures = Object.keys(variants).map((name) => {
    const { members, slots, routes, threads, connections, keys = 0, fair } = of(name);
    const own = rows.filter(({ peer }) => peer === name);
    const middle = (value, digits) => number(median(own.map(value)), digits);
    return [
      number(members, 0), number(slots, 0), number(routes, 0), number(threads, 0), number(connections, 0),
      ...(hasKeys ? [keys > 0 ? number(keys, 0) : '', fair ? `\`${fair}\`` : ''] : []),
      `${middle(cpu)} µs`, middle(perCpuSecond, 0), `${middle((row) => row.requests / row.seconds, 0)}/s`, `${middle(p99, 1)} ms`,
    ];
  });
  const text = `## Scale

${origin(result, ['hostler', 'wrk'])}

More members, more routes and more threads, divided by fewer of them${hasKeys ? ', and a fair queue, divided by one without `queue.fair`' : ''}:

${targetTable(targets)}

Medians:

${table(['members', 'slots each', 'routes', 'threads', 'connections', ...(hasKeys ? ['keys', '`queue.fair`'] : []), 'CPU per request', 'requests in a CPU second', 'requests', 'p99'], figures)}

${troubles(rows, Object.fromEntries(Object.keys(variants).map((name) => [name, name])), () => titles.hostler)}

How it is measured:

* As in Proxy cost: wrk and the members run on core 1. With one thread, Hostler runs on core 0. In the rows of threads, Hostler runs on all cores, also with one thread, and shares core 1 with
  wrk and the members. So only the CPU of a request is compared, and not how many requests there are.
* Half of the other routes match a host, half a path. The request matches the last route.
* With one slot each and ${number(600, 0)} connections, requests wait in the queue; it is compared with as many slots on 4 members.
${hasKeys ? FAIR_METHOD : ''}* p99 is that of wrk's closed loop.
${CPU}
* ${rounds(settings.rounds)} of ${settings.seconds} s for each variant, after ${settings.warmup} s of warm-up, in turns. A ratio is the median of pairs from the same round.
${AGREED}
`;
  return { text, targets };
}

const FAIR_METHOD = `* A fair queue is compared with the same queue without \`queue.fair\`, and the load is the same: each request has the next key, in the field of which \`queue.fair\` speaks. With 64 slots
  each, no request waits. With 1 slot each and 200 connections, all but 4 wait, each with a key of its own. Both stand side by side, and their slices take turns.
`;

const counted = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

function titleOf(name, of) {
  const [more, less] = [of(name), of(of(name).than)];
  if (more.fair) return `\`queue.fair\`, ${number(more.keys, 0)} keys, ${counted(more.slots, 'slot')} each, c = ${more.connections}`;
  if (more.threads !== less.threads) return `${more.threads} threads`;
  if (more.routes !== less.routes) return `${less.routes} -> ${number(more.routes, 0)} routes`;
  const slots = more.slots === less.slots ? '' : `, 1 slot each, c = ${more.connections}`;
  return `${less.members} -> ${more.members} members${slots}`;
}

const cpu = ({ cpu_ns, requests }) => cpu_ns / requests / 1000;
const perCpuSecond = ({ cpu_ns, requests }) => requests / (cpu_ns / 1e9);
const p99 = ({ p99_us }) => p99_us / 1000;
