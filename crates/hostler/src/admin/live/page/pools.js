// The section of lanes: a part for each pool with its title, its buttons, its labels and its canvas. Knows no other section.
import { at, element, say } from './elements.js';
import { Blocks } from './blocks.js';
import { OUTCOMES, QUEUE_HEIGHT, blockAt, draw, drawSample, laneHeight, readColours } from './lanes.js';
import { MANY, micros, several, slotsOf, used } from './format.js';
import { explainRefusal, explainWorker, workersOf } from './explain.js';
import { askPool } from './actions.js';

/** Pictures come ten times a second. The page is this much behind, so that a block is known before it is drawn. */
const BEHIND = 250_000;
/** A worker counts as hung for the page this long after it hung. */
const HUNG_FOR = 60_000;
/** Its lane is red for this long, or until it is ready again. */
const RED_FOR = 10_000;
const SPANS = [5, 10, 30, 60];

const parts = new Map();
const still = matchMedia('(prefers-reduced-motion: reduce)');
let span = 10e6;
let clock = { now: 0, seen: 0 };
let frozen = null;
let workers = new Map();

export function begin() {
  readColours();
  const samples = OUTCOMES.map(([how, text]) => [how, element('canvas', { width: 22, height: 12, 'aria-hidden': 'true' }), text]);
  at('legend').append(...samples.map(([, canvas, text]) => element('li', {}, canvas, text)));
  const drawSamples = () => samples.forEach(([how, canvas]) => drawSample(canvas, how));
  drawSamples();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (readColours(), drawSamples()));
  at('windows').append(...SPANS.map((seconds) => element('button', { type: 'button', 'aria-pressed': String(seconds * 1e6 === span), onclick: choose }, `${seconds} s`)));
  animate();
}

function choose({ target }) {
  span = parseInt(target.textContent, 10) * 1e6;
  for (const button of at('windows').children) button.setAttribute('aria-pressed', String(button === target));
  for (const { from } of parts.values()) say(from, `${span / 1e6} s ago`);
  drawAll();
}

/** Stops and starts the movement of the picture. What comes meanwhile is taken, but not drawn. */
export function freeze(isFrozen) {
  frozen = isFrozen ? moment() : null;
  for (const part of parts.values()) part.still = isFrozen ? { blocks: part.blocks.copy(), hung: hungIn(part) } : null;
  drawAll();
}

/** Takes a picture. */
export function take(frame) {
  clock = { now: frame.now, seen: performance.now() };
  const names = new Set(frame.pools.map(({ name }) => name));
  for (const [name, part] of parts) if (!names.has(name)) (part.node.remove(), parts.delete(name));
  if (parts.size === 0) at('pools').replaceChildren();
  for (const pool of frame.pools) {
    const part = parts.get(pool.name) ?? add(pool.name);
    part.blocks.take(pool, frame.ended.filter((each) => each.pool === pool.name), frame.now, frame.routes);
    part.pool = pool;
    label(part);
  }
  at('more-pools').hidden = frame.more_pools === 0;
  say(at('more-pools'), `${several(frame.more_pools, 'more pool')}: the picture has at most ${frame.pools.length}, those with work first. The table of workers has all.`);
}

/** Takes what the Status says about the workers. */
export function takeStatus(status) {
  workers = new Map(status.pools.map((pool) => [pool.name, pool]));
  for (const [name, part] of parts) {
    const pool = workers.get(name);
    // A spare that has stepped back has no lane.
    const there = new Set((pool?.workers ?? []).map(({ index }) => String(index)));
    for (const lane of part.blocks.lanes.values()) lane.isKept = there.has(lane.name);
    for (const worker of workersOf(pool).filter(isHung)) part.blocks.blame(String(worker.index), clock.now - worker.hung_ago_ms * 1000);
    part.restart.hidden = !pool?.workers;
  }
}

export const isHung = (worker) => worker.hung_ago_ms != null && worker.hung_ago_ms < HUNG_FOR;

const hangs = (worker) => isHung(worker) && (worker.hung_ago_ms < RED_FOR || worker.state !== 'ready');

function add(name) {
  const [title, figures, badge] = [element('h3', {}, name), element('span', { class: 'figures' }), element('span', { class: 'pill', hidden: '' })];
  const restart = element('button', { type: 'button', onclick: () => askPool('restart', name) }, 'Restart');
  restart.hidden = !workers.get(name)?.workers;
  const pause = element('button', { type: 'button', onclick: () => askPool(parts.get(name).pool.paused ? 'resume' : 'pause', name) }, 'Pause');
  for (const button of [restart, pause]) button.setAttribute('aria-description', `pool ${name}`);
  const [labels, canvas] = [element('ul', { class: 'labels' }), element('canvas', { role: 'img', 'aria-label': `lanes of ${name}` })];
  const from = element('span', {}, `${span / 1e6} s ago`);
  const node = element('article', { class: 'pool', 'aria-label': `pool ${name}` },
    element('div', { class: 'title' }, element('div', {}, title, figures, badge), element('div', { class: 'buttons' }, restart, pause)),
    element('div', { class: 'picture' }, labels, canvas, element('div', { class: 'axis' }, from, element('span', {}, 'now'))));
  const part = { name, node, figures, badge, labels, canvas, from, restart, pause, blocks: new Blocks(), still: null, height: 26, told: 0 };
  canvas.addEventListener('pointermove', (event) => tell(part, event));
  canvas.addEventListener('pointerleave', () => (at('tip').hidden = true));
  canvas.addEventListener('click', (event) => {
    const reason = refusalOf(found(part, event));
    if (reason) explainRefusal(reason);
  });
  parts.set(name, part);
  at('pools').append(node);
  return part;
}

function label(part) {
  const { pool } = part;
  // A picture of a large pool has not all members.
  const whole = pool.more_lanes > 0 ? workers.get(part.name) : null;
  const [slots, inUse] = whole ? [whole.slots, whole.in_use] : [slotsOf(pool.lanes), inUseOf(pool.lanes)];
  const more = pool.more_lanes > 0 ? `, ${several(pool.more_lanes, 'member')} not shown` : '';
  const held = slots >= MANY ? `${several(inUse, 'slot')} in use` : `${inUse} of ${several(slots, 'slot')} in use`;
  say(part.figures, `${held}, ${pool.queue} waiting (limit ${pool.limit})${more}`);
  const isAsleep = workers.get(part.name)?.asleep;
  const [text, kind] = pool.overloaded ? ['overloaded', 'bad'] : pool.paused ? ['paused', 'warn'] : [isAsleep ? 'asleep' : '', ''];
  part.badge.hidden = !text;
  part.badge.className = `pill ${kind}`;
  say(part.badge, text);
  say(part.pause, pool.paused ? 'Resume' : 'Pause');
  if (!part.still) labelLanes(part, part.blocks.sorted);
  if (performance.now() - part.told > 5000) {
    part.told = performance.now();
    part.canvas.setAttribute('aria-label', `pool ${part.name}: ${part.figures.textContent}${text ? `, ${text}` : ''}. The tables below have all figures.`);
  }
}

/** The labels beside the canvas, one for each lane. */
function labelLanes(part, lanes) {
  const { pool, labels } = part;
  part.height = laneHeight(lanes);
  const rows = [{ name: 'queue', state: pool.queue > 0 ? `${pool.queue} waiting` : 'empty', kind: pool.queue > 0 ? 'queue warn' : 'queue', height: QUEUE_HEIGHT }];
  for (const lane of lanes) rows.push({ name: lane.name, ...stateOf(part, lane), height: part.height + 5, act: () => explainWorker(part.name, lane.name, workers.get(part.name)) });
  while (labels.children.length > rows.length) labels.lastChild.remove();
  rows.forEach((row, index) => fillLabel(labels.children[index] ?? labels.appendChild(element('li')), row));
}

function stateOf(part, lane) {
  const known = workersOf(workers.get(part.name)).filter(({ index }) => String(index) === lane.name);
  const worker = known.find(({ member }) => member === lane.id) ?? known.at(-1);
  const long = [lane.streams && several(lane.streams, 'stream'), lane.tunnels && several(lane.tunnels, 'tunnel')].filter(Boolean).join(', ');
  if (worker && hangs(worker)) return { state: 'hung', kind: 'bad' };
  if (lane.out) return { state: 'out', kind: 'bad' };
  if (worker?.drained_ms != null) return { state: 'drained', kind: 'warn' };
  if (worker?.blocked_ms != null) return { state: 'blocked', kind: 'warn' };
  if (lane.gone !== null) return { state: worker?.state ?? 'gone', kind: 'warn' };
  if (lane.left) return { state: 'leaving', kind: 'warn' };
  return { state: `${used(lane.inUse, lane.slots)}${long ? `, ${long}` : ''}`, kind: '' };
}

function fillLabel(item, { name, state, kind, height, act }) {
  if (item.className !== kind) item.className = kind;
  const size = `${height}px`;
  if (item.style.height !== size) item.style.height = size;
  if (item.children.length === 0) {
    const first = act ? element('button', { type: 'button', class: 'words', onclick: () => item.act() }) : element('span');
    item.append(first, element('span', { class: 'state' }));
  }
  item.act = act;
  say(item.children[0], name);
  say(item.children[1], state);
}

function moment() {
  return clock.now + (performance.now() - clock.seen) * 1000 - BEHIND;
}

/** Draws as often as the screen does. For people who want less motion, once a second. */
function animate() {
  drawAll();
  if (still.matches) setTimeout(animate, 1000);
  else requestAnimationFrame(animate);
}

function drawAll() {
  const now = frozen ?? moment();
  for (const part of parts.values()) {
    part.view = { now, span, height: part.height, hung: part.still?.hung ?? hungIn(part) };
    draw(part.canvas, drawn(part), part.view);
  }
}

/** The names of the lanes whose worker hangs. */
function hungIn(part) {
  return new Set(workersOf(workers.get(part.name)).filter(hangs).map(({ index }) => String(index)));
}

/** What the picture shows: the blocks as they are, or as they were when it was frozen. */
function drawn(part) {
  return part.still?.blocks ?? part.blocks;
}

/** The block below the pointer, and its lane. */
function found(part, { clientX, clientY }) {
  const box = part.canvas.getBoundingClientRect();
  return part.view && blockAt(part.canvas, drawn(part), part.view, clientX - box.left, clientY - box.top);
}

/** Why the request of a block was refused. */
function refusalOf(place) {
  return place?.block.how === 'error' ? null : place?.block.reason;
}

function tell(part, event) {
  const [tip, place] = [at('tip'), found(part, event)];
  const reason = refusalOf(place);
  part.canvas.style.cursor = reason ? 'pointer' : '';
  tip.hidden = !place;
  if (!place) return;
  const { lane, block } = place;
  const held = (block.end ?? part.view.now) - block.since;
  const lines = [`${part.name}/${lane.name}  ${block.route ?? ''}`, `${micros(held)} at the worker${block.wait == null ? '' : `, waited ${micros(block.wait)}`}`];
  if (reason) lines.push(`refused: ${reason}`, 'Click: what it means, what to do.');
  else if (block.reason) lines.push(block.reason);
  else if (block.status) lines.push(`status ${block.status}`);
  else lines.push(block.end === null ? 'not answered yet' : 'ended, result not known');
  say(tip, lines.join('\n'));
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 290)}px`;
  tip.style.top = `${event.clientY + 16}px`;
}

function inUseOf(lanes) {
  return lanes.reduce((all, lane) => all + lane.in_use, 0);
}
