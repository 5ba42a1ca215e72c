// The tables of the page: requests, refusals, workers, members, routes, cache and registrations. Knows no lanes.
import { at, say, table } from './elements.js';
import { bytes, count, micros, millis, percent, used } from './format.js';
import { explainRefusal, explainWorker, workersOf } from './explain.js';
import { isHung } from './pools.js';
import { ask } from './stream.js';

/** So many registered members are listed. */
const MOST_MEMBERS = 50;
/** When the registered members were last asked for, by the clock that is never set. */
let asked = -Infinity;

/** Shows what has changed since the last Status. */
export function show({ status, route_times: times, oldest: longest, slowest }) {
  oldest(status, longest);
  const pool = (name) => status.pools.find((each) => each.name === name);
  table(at('slowest'), [['route', 'name'], ['worker'], ['total', 'n'], ['waited', 'n'], ['at the worker', 'n'], ['status', 'n']],
    slowest.map((each) => [each.route ?? '–', worker(each.pool, each.lane, pool(each.pool)), micros(each.total_us), micros(each.wait_us), micros(each.hold_us), status_(each)]),
    'No request has ended since this page was opened.');
  refusals(status);
  workers(status);
  routes(status, times);
  fair(status);
  cache(status);
  registrations(status);
}

function oldest(status, longest) {
  const rows = longest.map(({ pool, lane, route, age_us: age }) => {
    const place = lane === null ? 'waits in the queue' : worker(pool, lane, status.pools.find(({ name }) => name === pool));
    return [route ?? '–', lane === null ? `${pool}: ${place}` : place, { text: micros(age), kind: age > 1e7 ? 'bad' : age > 1e6 ? 'warn' : '' }];
  });
  table(at('oldest'), [['route', 'name'], ['where'], ['age', 'n']], rows, 'No request is under way.');
}

function worker(pool, lane, about) {
  return lane === null ? '–' : { text: `${pool}/${lane}`, act: () => explainWorker(pool, lane, about) };
}

function status_({ status, refusal }) {
  return refusal ? { text: `${status} ${refusal}`, act: () => explainRefusal(refusal) } : { text: status || 'client left', kind: status >= 500 ? 'bad' : '' };
}

/** The rows beside those of configured routes. Registered routes count together. */
function others({ unrouted, registered }) {
  return [['(no route)', unrouted], ...(registered ? [['(registered)', registered]] : [])];
}

function refusals(status) {
  const reasons = new Map();
  for (const [pattern, counters] of [...status.routes.map((route) => [route.pattern, route]), ...others(status)]) {
    for (const kind of ['refusals', 'fallbacks']) {
      for (const [reason, number] of Object.entries(counters[kind])) {
        const known = reasons.get(reason) ?? { refusals: 0, fallbacks: 0, routes: new Set() };
        known[kind] += number;
        known.routes.add(pattern);
        reasons.set(reason, known);
      }
    }
  }
  const sorted = [...reasons].sort(([, a], [, b]) => b.refusals + b.fallbacks - a.refusals - a.fallbacks);
  table(at('refusals'), [['reason'], ['refused', 'n'], ['with fallback', 'n'], ['routes', 'name']],
    sorted.map(([reason, each]) => [{ text: reason, act: () => explainRefusal(reason) }, count(each.refusals), count(each.fallbacks), [...each.routes].join(', ')]),
    'Hostler has refused no request.');
}

function workers(status) {
  const rows = status.pools.flatMap((pool) => (pool.workers ? workersOf(pool).map((each) => workerRow(pool, each)) : pool.members.map((each) => memberRow(pool, each))));
  table(at('workers'), [['name'], ['state'], ['slots', 'n'], ['requests', 'n'], ['memory', 'n'], ['heap', 'n'], ['loop busy', 'n'], ['loop delay p99', 'n'], ['restarts', 'n'], ['age', 'n'], ['last exit', 'name']],
    rows, 'No pool has workers or members now.');
}

function workerState(each) {
  if (each.blocked_ms != null) return { text: `blocked for ${millis(each.blocked_ms)}`, kind: 'warn' };
  if (isHung(each)) return { text: `${each.state}; hung ${millis(each.hung_ago_ms)} ago`, kind: 'bad' };
  const text = each.drained_ms == null ? each.state : 'drained';
  return { text, kind: each.state === 'ready' || each.state === 'standby' ? '' : 'warn' };
}

function workerRow(pool, each) {
  const heap = each.heap ? `${bytes(each.heap.used)} of ${bytes(each.heap.limit)}` : '–';
  const busy = { text: percent(each.utilisation), kind: each.utilisation > 0.9 ? 'warn' : '' };
  const delay = each.event_loop_delay ? micros(each.event_loop_delay.p99_us) : '–';
  return [worker(pool.name, String(each.index), pool), workerState(each), used(each.in_use, each.slots), count(each.requests), bytes(each.memory), heap, busy, delay, each.restarts, millis(each.uptime_ms), each.last_exit ?? '–'];
}

function memberRow(pool, each) {
  const fault = ['unhealthy', 'ejected', 'unreachable'].find((flag) => each[flag]);
  const name = typeof each.endpoint === 'string' ? each.endpoint : String(each.id);
  return [worker(pool.name, name, pool), { text: fault ?? (each.left ? 'leaving' : 'ok'), kind: fault ? 'bad' : '' }, used(each.in_use, each.slots), count(each.granted), '–', '–', '–', '–', '–', millis(each.joined_ms), '–'];
}

function routes(status, times) {
  const { routes: all, pools } = status;
  const ledgers = new Map(pools.map(({ name, ledger }) => [name, new Map((ledger?.routes ?? []).map((each) => [each.name, each]))]));
  const cost = (route) => ledgers.get(poolOf(route.target))?.get(route.pattern);
  const row = (name, target, each, time) => {
    const { answers } = each;
    const hits = each.cache ?? {};
    const asked = Object.values(hits).reduce((sum, number) => sum + number, 0);
    const share = asked ? ((hits.hit ?? 0) + (hits.stale ?? 0) + (hits.collapsed ?? 0)) / asked : null;
    return [name, target, count(answers['2xx']), count(answers['3xx']), count(answers['4xx']), { text: count(answers['5xx']), kind: answers['5xx'] > 0 ? 'bad' : '' },
      time(0), time(1), time(2), percent(share), percent(each.cpu)];
  };
  const known = (pattern) => (index) => routeTime(times[pattern]?.[['p50', 'p90', 'p99'][index]]);
  table(at('routes'), [['route', 'name'], ['to', 'name'], ['2xx', 'n'], ['3xx', 'n'], ['4xx', 'n'], ['5xx', 'n'], ['p50', 'n'], ['p90', 'n'], ['p99', 'n'], ['from cache', 'n'], ['share of worker CPU', 'n']],
    [...all.map((route) => row(route.pattern, route.target, { ...route, cpu: part(cost(route)) }, known(route.pattern))), ...others(status).map(([name, each]) => row(name, '', each, () => '–'))], '');
}

/** The pool of a target such as `pool web`, or `static /srv/public, pool web`: there the pool gets what is no file. */
function poolOf(target) {
  return /(?:^|, )pool (.+)$/.exec(target)?.[1];
}

/** Of the CPU time of its pool's workers in the last minute. */
function part(cost) {
  return cost?.cpu_ms ? cost.share_percent / 100 : null;
}

/** Routes count times in buckets: of the first and the last only the bound is known. */
function routeTime(ms) {
  if (ms != null && ms < 5) return '< 5 ms';
  return ms >= 10_000 ? '> 10 s' : millis(ms);
}

/** What the keys of fair pools have cost. */
function fair({ pools }) {
  const rows = pools.flatMap(({ name, fair: shared }) => (shared?.keys ?? []).map((each) => {
    const { '1m': minute, '15m': quarter, '1d': day } = each.worker_ms;
    return [each.key, name, `${Math.round(each.share_percent)} %`, millis(minute), millis(quarter), millis(day), count(each.requests), { text: count(each.refused), kind: each.refused > 0 ? 'warn' : '' }];
  }));
  at('fair-section').hidden = !pools.some(({ fair: shared }) => shared);
  table(at('fair'), [['key'], ['pool'], ['of the pool', 'n'], ['1 min', 'n'], ['15 min', 'n'], ['1 day', 'n'], ['requests', 'n'], ['refused', 'n']],
    rows, 'No request has ended.');
}

function cache({ cache: stored }) {
  at('cache-section').hidden = !stored;
  if (!stored) return;
  const rows = [['memory', count(stored.keys), `${bytes(stored.bytes)} of ${bytes(stored.limit)}`, count(stored.evicted), count(stored.purged), stored.fetching]];
  for (const server of stored.memcached) rows.push([`memcached ${server.server}`, count(server.stored), server.state === 'here' ? 'in use' : 'not in use', '–', '–', '–']);
  table(at('cache'), [['store', 'name'], ['responses', 'n'], ['size', 'n'], ['evicted', 'n'], ['purged', 'n'], ['fetches now', 'n']], rows, '');
}

function registrations({ registrar }) {
  at('registrations-section').hidden = !registrar;
  if (!registrar) return;
  const rows = [[registrar.connected ? 'connected' : { text: 'not connected', kind: 'bad' }, count(registrar.routes), count(registrar.members), count(registrar.pruned), registrar.pruning_suspended ? 'suspended' : 'on']];
  table(at('registrations'), [['registrar'], ['routes', 'n'], ['members', 'n'], ['expired members', 'n'], ['pruning']], rows, '');
  members(registrar.members);
}

/** Each registered member with its age, asked for now and then: there may be thousands. */
async function members(total) {
  if (performance.now() - asked < 5000) return;
  asked = performance.now();
  const found = await ask('/table').then((answer) => answer.json()).catch(() => null);
  const all = (found?.routes ?? []).flatMap(({ route, members: served }) => served.filter(({ age_ms: age }) => age != null).map((each) => ({ route, ...each })));
  const rows = all.sort((a, b) => b.age_ms - a.age_ms).slice(0, MOST_MEMBERS)
    .map((each) => [each.route, each.address, millis(each.age_ms), each.ttl_ms == null ? 'none' : millis(each.ttl_ms)]);
  table(at('members'), [['route', 'name'], ['member'], ['last registered', 'n'], ['kept for', 'n']], rows, 'No member is registered.');
  say(at('more-members'), total > rows.length ? `The ${rows.length} with the oldest registrations, of ${count(total)}. All: /table` : '');
}
