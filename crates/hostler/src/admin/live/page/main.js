// The live page: connects the events of Hostler with the sections. Knows which section takes which event.
import { at, element, pageLink, say } from './elements.js';
import { askPurge, askToken, forgetToken } from './actions.js';
import { bytes, count, millis } from './format.js';
import { explainWorker, workersOf } from './explain.js';
import { follow, onTokenWanted, tokenState, wantToken } from './stream.js';
import * as plots from './plots.js';
import * as pools from './pools.js';
import { show as showTables } from './tables.js';

let last = null;

onTokenWanted(askToken, showTokenButton);
showTokenButton();
pools.begin();
plots.begin();
at('freeze').addEventListener('click', ({ target }) => {
  const isFrozen = target.getAttribute('aria-pressed') !== 'true';
  target.setAttribute('aria-pressed', String(isFrozen));
  pools.freeze(isFrozen);
});
at('token').addEventListener('click', () => {
  if (tokenState() === 'wanted') wantToken();
  else (forgetToken(), showTokenButton());
});
at('purge').addEventListener('click', askPurge);

follow('/live/events', (name, data) => TAKES[name]?.(data), (state, why) => {
  const text = state === 'live' ? 'live' : `no connection${why ? `: ${why}` : ''}`;
  at('link').className = `pill ${state === 'live' ? 'good' : 'bad'}`;
  say(at('link'), text);
});

const TAKES = {
  frame: pools.take,
  history: (data) => plots.take(data, true),
  sample: (data) => plots.take(data, false),
  status(data) {
    const { status } = data;
    facts(status);
    notices(status);
    pools.takeStatus(status);
    showTables(data);
    if (!last) performance.mark('useful');
    last = status;
  },
};

/** The button forgets the token that the page has, or asks for the one that Hostler wants. */
function showTokenButton() {
  const state = tokenState();
  at('token').hidden = !state;
  say(at('token'), state === 'wanted' ? 'Enter token' : 'Forget token');
}

function facts(status) {
  say(at('about'), `version ${status.version}, pid ${status.pid}, ${status.state}`);
  const { process, connections } = status;
  const cpu = last && last.pid === status.pid ? ((process.cpu_ms - last.process.cpu_ms) / Math.max(1, status.uptime_ms - last.uptime_ms)) * 100 : null;
  const shown = [
    ['up', millis(status.uptime_ms)],
    ['connections', count(connections.open)],
    ['memory', bytes(status.memory)],
    ['CPU of Hostler', cpu === null ? '–' : `${cpu.toFixed(1)} %`],
    ['streams', count(connections.streams)],
    ['tunnels', count(connections.tunnels)],
  ];
  const place = at('facts');
  if (place.children.length === 0) place.append(...shown.map(([name]) => element('div', {}, element('dt', {}, name), element('dd'))));
  shown.forEach(([, text], index) => say(place.children[index].lastChild, text));
}

/** What needs attention, the most urgent first: kind, text, page about it, and the worker it is about with what its name does. */
function notices(status) {
  const all = [];
  for (const pool of status.pools) {
    const named = (worker) => [`${pool.name}/${worker.index}`, () => explainWorker(pool.name, String(worker.index), pool)];
    for (const worker of workersOf(pool).filter(pools.isHung)) {
      const where = worker.stack?.[0] ? ` in ${worker.stack[0]}` : '';
      all.push(['bad', `hung ${millis(worker.hung_ago_ms)} ago${where}`, 'guide/failures.md#a-worker-hangs', ...named(worker)]);
    }
    for (const worker of workersOf(pool).filter((each) => each.blocked_ms != null)) {
      all.push(['warn', `has been blocked for ${millis(worker.blocked_ms)}: it has requests, and its event loop does not turn.`, 'guide/failures.md#a-worker-hangs', ...named(worker)]);
    }
    if (pool.overloaded) all.push(['bad', `${pool.name} is overloaded: more work comes than it can do. Hostler refuses requests that would wait long. Add workers, or make the slowest route faster.`, 'concepts/overload.md']);
    if (pool.paused) all.push(['warn', `${pool.name} is paused: its requests wait.`, 'guide/failures.md#a-pool-is-paused']);
    if (pool.rollout?.running_ms != null) all.push(['warn', `${pool.name} restarts: ${pool.rollout.done} of ${pool.rollout.total} workers are new.`, 'guide/failures.md#a-pool-restarts']);
    if (pool.rollout?.last?.succeeded === false) all.push(['bad', `The last restart of ${pool.name} failed ${millis(pool.rollout.last.ago_ms)} ago: ${pool.rollout.last.result}`, 'guide/failures.md#a-restart-fails-because-the-new-version-does-not-boot']);
    const [kept, ...more] = pool.kept_off;
    if (kept) all.push(['warn', `${pool.name}: Hostler refuses requests like ${kept.request} for another ${millis(kept.for_ms)}, because they made workers die. Correct the app.${more.length > 0 ? ` Others that it refuses: ${more.length}.` : ''}`, 'guide/failures.md#the-same-request-kills-workers-again-and-again']);
  }
  if (status.state === 'draining') all.push(['warn', 'Hostler stops: it finishes what it has accepted.', 'guide/failures.md#hostler-is-stopped-sigterm-sigint']);
  if (status.last_reload?.ok === false) all.push(['bad', `The last reload failed: ${status.last_reload.text.join('; ')}`, 'guide/failures.md#a-reload-has-a-bad-configuration']);
  if (status.log.stuck_ms != null) all.push(['warn', `The reader of the log has read nothing for ${millis(status.log.stuck_ms)}.`, 'guide/failures.md#hostler-writes-its-log-to-a-pipe-that-is-full']);
  // One line about refused requests is enough.
  const isSaid = ({ id, pool }) => id === 'requests_kill_workers' && status.pools.some(({ name, kept_off: kept }) => name === pool && kept.length > 0);
  for (const { severity, text, action, page } of (status.advice ?? []).filter((each) => !isSaid(each))) all.push([severity === 'critical' ? 'bad' : 'warn', `${text}${/[.?]$/.test(text) ? '' : '.'} ${action}`, page]);
  const place = at('notices');
  // A rebuilt link or button would lose the focus. The texts, whose figures change all the time, are set below.
  const key = all.map(([kind, , page, name]) => `${kind} ${name ?? ''} ${page}`).join('\n');
  if (place.dataset.key !== key) {
    place.dataset.key = key;
    place.replaceChildren(...all.map(([kind, , page, name]) => element('p', { class: `notice ${kind}` },
      ...(name ? [element('button', { type: 'button', class: 'words' }, name), ' '] : []), element('span'), ' ', pageLink(page, 'More about this'))));
  }
  all.forEach(([, text, , , act], index) => {
    const node = place.children[index];
    say(node.querySelector('span'), text);
    if (act) node.querySelector('button').onclick = act;
  });
}
