// Explanations of refusals and workers in a dialog. The texts on refusals are those of the reference.
import { at, element, pageLink } from './elements.js';
import { bytes, micros, millis, percent } from './format.js';
import { ask } from './stream.js';
import { askPool, askWorker } from './actions.js';

const STATES = {
  booting: 'It starts. It gets requests when it listens and is warm.',
  warming: 'Hostler requests its warm-up paths. The worker gets requests after that.',
  ready: 'It gets requests.',
  standby: 'It is a spare: it is ready and gets requests when a worker is missing or blocked.',
  'out of rotation': 'It gets no new requests and finishes its own. It gets requests again later: it is drained, or Hostler takes a heap snapshot of it.',
  retiring: 'It gets no new requests and finishes its own.',
  stopping: 'It has its signal to stop.',
  'backing off': 'Its last start failed. It waits before it starts again.',
  stopped: 'It has stopped. Hostler does not start it again.',
};

let refusals = null;

/** The workers of a pool of the Status, and its spares, which have numbers of their own. None: other programs are its members. */
export const workersOf = (pool) => [...(pool?.workers ?? []), ...(pool?.spares ?? [])];

/** Says what a refusal means and what to do. */
export async function explainRefusal(reason) {
  refusals ??= await ask('/live/refusals').then((answer) => answer.json()).catch(() => null);
  const about = refusals?.[reason];
  if (!about) return open(`Refusal: ${reason}`, [more('reference/refusals.md', 'All refusals')]);
  const facts = [['status', about.status], ['when', about.when], ['whose fault', about.cause], ['what to do', about.remedy]];
  const shown = facts.filter(([, text]) => text).map(([name, text]) => [name, withCode(String(text))]);
  open(`Refusal: ${reason}`, [list(shown), more(about.page, 'More about this refusal')]);
}

/** Says what a worker does, why, and where it hung last. */
export function explainWorker(pool, name, about) {
  const isIt = ({ index }) => String(index) === name;
  const spare = about?.spares?.find(isIt);
  const worker = about?.workers?.findLast(isIt) ?? spare;
  if (!worker) return explainMember(pool, name, about);
  const facts = [
    ['state', `${worker.state}. ${STATES[worker.state] ?? ''}`],
    ['drained', worker.drained_ms != null && `${millis(worker.drained_ms)} ago${worker.drain_ends_in_ms == null ? ', until you undrain it' : `, ends in ${millis(worker.drain_ends_in_ms)}`}`],
    ['blocked', worker.blocked_ms != null && `for ${millis(worker.blocked_ms)}: it has requests, and its event loop does not turn`],
    ['process', worker.pid],
    ['age', millis(worker.uptime_ms)],
    ['slots', `${worker.in_use} of ${worker.slots} in use`],
    ['why so many slots', worker.slots_reason],
    ['CPUs', worker.cpus],
    ['why these CPUs', worker.cpus_reason],
    ['memory', bytes(worker.memory)],
    ['heap', worker.heap && `${bytes(worker.heap.used)} of ${bytes(worker.heap.limit)}`],
    ['event loop busy', worker.utilisation == null ? null : percent(worker.utilisation)],
    ['event loop delay', worker.event_loop_delay && `p50 ${micros(worker.event_loop_delay.p50_us)}, p99 ${micros(worker.event_loop_delay.p99_us)}`],
    ['restarts', worker.restarts],
    ['last exit', worker.last_exit],
    ['last error', worker.last_error],
    ['recycled because', worker.recycled],
  ];
  const parts = [list(facts.filter(([, text]) => text != null && text !== '' && text !== false))];
  if (worker.hung_ago_ms != null) {
    parts.push(element('p', {}, `It hung ${millis(worker.hung_ago_ms)} ago: its event loop did not answer. Hostler took it out of the pool and started it again.`));
    parts.push(worker.stack ? element('pre', { tabindex: '0', 'aria-label': 'call stack' }, worker.stack.join('\n')) : element('p', {}, 'Its call stack is not known.'));
    if (worker.stack) parts.push(element('p', { class: 'quiet' }, 'Where it stood then, the innermost call first.'));
  }
  const turn = worker.drained_ms == null ? 'drain' : 'undrain';
  const act = element('button', { type: 'button', onclick: () => (at('explain').close(), askWorker(turn, pool, name)) }, `${turn === 'drain' ? 'Drain' : 'Undrain'} ${pool}/${name}`);
  parts.push(element('div', { class: 'buttons' }, ...(worker === spare ? [] : [act]), element('button', { type: 'button', onclick: () => (at('explain').close(), askPool('restart', pool)) }, `Restart the workers of ${pool}`)));
  parts.push(more(worker.hung_ago_ms != null ? 'guide/failures.md#a-worker-hangs' : 'guide/seeing.md#workers', 'More about workers'));
  open(`Worker ${pool}/${name}`, parts);
}

function explainMember(pool, name, about) {
  const check = about?.health_checks?.find(({ member }) => member === name);
  const facts = [['pool', pool], ['health checks', check && `${check.passed} passed, ${check.failed} failed`], ['last failure', check?.last_failure]];
  const text = about?.workers ? 'This worker has gone.' : 'Another program serves this address. Hostler sends it requests and does not start it.';
  open(`Member ${name}`, [element('p', {}, text), list(facts.filter(([, value]) => value)), more(about?.workers ? 'guide/seeing.md#workers' : 'guide/members.md', 'More about members')]);
}

function list(facts) {
  return element('dl', {}, ...facts.flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, ...[text].flat())]));
}

/** A text of the reference: what stands between backticks is code. */
function withCode(text) {
  return text.split('`').map((part, at) => (at % 2 === 1 ? element('code', {}, part) : part));
}

function open(title, parts) {
  at('explain-title').textContent = title;
  at('explain-body').replaceChildren(...parts);
  if (!at('explain').open) at('explain').showModal();
}

function more(page, text) {
  return element('p', {}, pageLink(page, text));
}
