// Draws the queue and the lanes of one pool on a canvas. Knows blocks and no events.

export const OUTCOMES = [
  ['running', 'at the worker now'],
  ['ok', 'answered'],
  ['client', '4xx'],
  ['error', '5xx'],
  ['refused', 'refused by Hostler'],
  ['left', 'client left'],
  ['done', 'ended, result not known'],
  ['wait', 'waits in the queue'],
];
export const QUEUE_HEIGHT = 34;
const GAP = 5;

let colours = {};

/** Reads the colours of the style sheet. To be called again when the colour scheme changes. */
export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [...OUTCOMES.map(([name]) => name), 'rail', 'ink', 'quiet', 'line', 'card', 'accent'];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return colours;
}

/** The height of a lane: more for workers that have many requests at once. */
export function laneHeight(lanes) {
  const tracks = Math.max(1, ...lanes.map(({ tracks }) => tracks.length));
  return tracks === 1 ? 26 : Math.min(64, Math.max(28, tracks * 6 + 4));
}

/** Draws the picture of the moment `now` with the last `span` microseconds. `hung` are names of lanes. */
export function draw(canvas, blocks, { now, span, height, hung }) {
  const [width, lanes] = [canvas.clientWidth, blocks.sorted];
  const total = QUEUE_HEIGHT + lanes.length * (height + GAP);
  const context = sized(canvas, width, total);
  context.clearRect(0, 0, width, total);
  const x = (time) => width - ((now - time) / span) * width;
  rails(context, width, lanes, height);
  drawQueue(context, blocks, x, width);
  lanes.forEach((lane, index) => drawLane(context, lane, QUEUE_HEIGHT + index * (height + GAP), height, x, width, hung.has(lane.name)));
}

/** The block at a point of the canvas. */
export function blockAt(canvas, blocks, { now, span, height }, pointX, pointY) {
  const index = Math.floor((pointY - QUEUE_HEIGHT) / (height + GAP));
  const lane = pointY < QUEUE_HEIGHT ? null : blocks.sorted[index];
  if (!lane) return null;
  const time = now - ((canvas.clientWidth - pointX) / canvas.clientWidth) * span;
  const slack = (span / canvas.clientWidth) * 2;
  const tracks = Math.max(1, lane.tracks.length);
  const track = Math.floor((pointY - QUEUE_HEIGHT - index * (height + GAP)) / (height / tracks));
  const block = lane.blocks.findLast(({ since, end, track: own }) => own === track && since - slack <= time && (end ?? now) + slack >= time);
  return block ? { lane, block } : null;
}

/** Draws the sample of one outcome for the legend. */
export function drawSample(canvas, how) {
  const context = sized(canvas, 22, 12);
  context.clearRect(0, 0, 22, 12);
  if (how === 'wait') return void ((context.fillStyle = colours.wait), context.fillRect(0, 4, 22, 4));
  paint(context, how, 0, 0, 22, 12);
}

function sized(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

function rails(context, width, lanes, height) {
  context.fillStyle = colours.rail;
  context.fillRect(0, 0, width, QUEUE_HEIGHT - GAP);
  lanes.forEach((_, index) => context.fillRect(0, QUEUE_HEIGHT + index * (height + GAP), width, height));
}

function drawQueue(context, { waiting, refused }, x, width) {
  const room = QUEUE_HEIGHT - GAP - 2;
  const step = Math.min(5, room / Math.max(1, waiting.length));
  context.fillStyle = colours.wait;
  waiting.forEach(({ since }, index) => {
    const from = Math.max(0, x(since));
    context.fillRect(from, 1 + index * step, Math.max(2, width - from), Math.max(0.75, step - 1));
  });
  // A refused request is a short line through the whole queue.
  context.fillStyle = colours.refused;
  for (const { at } of refused) {
    const mark = x(at);
    if (mark >= 0) context.fillRect(mark - 0.75, 0, 1.5, QUEUE_HEIGHT - GAP);
  }
}

function drawLane(context, lane, top, height, x, width, isHung) {
  const tracks = Math.max(1, lane.tracks.length);
  const each = height / tracks;
  const gap = each > 4 ? 1 : 0;
  for (const { since, end, how, track } of lane.blocks) {
    const to = end === null ? width : Math.min(width, x(end));
    if (to < 0) continue;
    const from = Math.max(0, x(since));
    if (from > width) continue;
    const shown = isHung && end === null ? 'error' : how;
    paint(context, shown, from, top + track * each + gap / 2, Math.max(1.5, to - from - 0.75), each - gap);
  }
  if (lane.out || isHung) {
    context.strokeStyle = colours.error;
    context.lineWidth = 2;
    context.strokeRect(1, top + 1, width - 2, height - 2);
  }
}

/** Outcomes differ in more than colour: an error has a dark edge, 4xx and refusals are striped at the foot and the top, a client that left is hollow. */
function paint(context, how, left, top, width, height) {
  context.fillStyle = colours[how];
  if (how === 'left') {
    context.globalAlpha = 0.35;
    context.fillRect(left, top, width, height);
    context.globalAlpha = 1;
    if (width > 3) context.fillRect(left, top + height / 2 - 0.5, width, 1);
    return;
  }
  context.fillRect(left, top, width, height);
  if (width < 4 || height < 5) return;
  context.fillStyle = colours.ink;
  if (how === 'error') context.fillRect(left, top, 2, height);
  if (how === 'client') context.fillRect(left, top + height - 2, width, 2);
  if (how === 'refused') context.fillRect(left, top, width, 2);
  if (how === 'running') {
    context.fillStyle = colours.accent;
    context.fillRect(left + width - 2, top, 2, height);
  }
}
