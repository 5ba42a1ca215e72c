// The requests of one pool as blocks in lanes: when each began and ended, in which track, and how. Draws nothing.

/** Blocks are kept this long after their end, in microseconds. */
const KEPT = 61e6;
/** The most blocks of a lane: older ones are dropped. */
const MOST = 4000;
const MOST_TRACKS = 64;
/** A lane of a member that has gone stays this long, or until its worker has another lane. */
const GONE = 2e6;
/** After a longer pause between two pictures, the page was hidden or had no connection. */
const PAUSE = 2e6;
const SLACK = 400;
/** A new block is compared with this many of a track. */
const RECENT = 24;

/** The order of the names of lanes: 2 comes before 10. */
const byName = new Intl.Collator(undefined, { numeric: true }).compare;

export class Blocks {
  lanes = new Map();
  /** The lanes in the order of their names. They are drawn far more often than they change. */
  sorted = [];
  /** Requests that got no slot: `{ at, reason }`. */
  refused = [];
  waiting = [];
  routes = [];
  /** The moment of the last picture. */
  #seen = 0;

  /** Takes the pool's part of a picture. */
  take(pool, ended, now, routes) {
    // Another process of Hostler counts its time from 0: what is known has moments of a clock that is gone.
    if (now < this.#seen) [this.lanes, this.refused] = [new Map(), []];
    // After a pause it is not known when a request has ended. It may have been long before this picture.
    const over = now - this.#seen > PAUSE ? this.#seen : now;
    this.#seen = now;
    this.waiting = pool.waiting.map(([since, route]) => ({ since, route: routes[route] }));
    const ids = new Set(pool.lanes.map(({ id }) => id));
    // First the lanes that have gone: a worker can be started again between two pictures, and then goes on in its lane.
    for (const [id, lane] of this.lanes) {
      if (ids.has(id)) continue;
      lane.gone ??= now;
      close(lane, new Set(), over);
    }
    for (const seen of pool.lanes) this.#takeLane(seen, over, routes);
    const there = new Set(pool.lanes.map(({ name }) => name));
    for (const [id, lane] of this.lanes) {
      const isKept = lane.isKept && !there.has(lane.name);
      if (lane.gone !== null && now - lane.gone > GONE && !isKept) this.lanes.delete(id);
    }
    for (const each of ended) this.#takeEnded(each);
    this.refused = this.refused.filter(({ at }) => now - at < KEPT);
    for (const lane of this.lanes.values()) prune(lane, now);
    this.sorted = [...this.lanes.values()].sort((a, b) => byName(a.name, b.name) || a.id - b.id);
  }

  /** A worker hung at this moment. The requests that it had then are to blame, or suffered from it. */
  blame(name, moment) {
    for (const lane of this.lanes.values()) {
      if (lane.name !== name) continue;
      for (const block of lane.blocks) {
        const end = block.end ?? Infinity;
        if (block.since < moment && end > moment - 1e6 && end - block.since > 1e6) Object.assign(block, { how: 'error', reason: 'its worker hung' });
      }
    }
  }

  /** A copy to draw that no later picture changes. */
  copy() {
    const { sorted, waiting, refused } = this;
    return structuredClone({ sorted, waiting, refused });
  }

  #takeLane(seen, over, routes) {
    const lane = this.lanes.get(seen.id) ?? this.#newLane(seen);
    Object.assign(lane, { name: seen.name, slots: seen.slots, inUse: seen.in_use, tunnels: seen.tunnels, streams: seen.streams, left: seen.left, out: seen.out, gone: null });
    const open = new Set(seen.held.map(([since]) => since));
    close(lane, open, over);
    for (const [since, route] of seen.held) {
      if (!lane.byTime.has(since)) add(lane, { since, end: null, how: 'running', route: routes[route] });
    }
  }

  /** A worker that is started again goes on in the lane of the one before, if that has no request left. */
  #newLane(seen) {
    const before = [...this.lanes.values()].find((lane) => lane.name === seen.name && lane.gone !== null);
    if (before) this.lanes.delete(before.id);
    const lane = before ?? { name: seen.name, blocks: [], byTime: new Map(), tracks: [] };
    lane.id = seen.id;
    lane.slots = seen.slots;
    this.lanes.set(seen.id, lane);
    return lane;
  }

  #takeEnded(ended) {
    const how = outcome(ended);
    if (ended.since === null) {
      if (how === 'refused') this.refused.push({ at: ended.ended, reason: ended.refusal });
      return;
    }
    const lanes = [...this.lanes.values()].filter(({ name }) => name === ended.lane);
    const lane = lanes.find(({ byTime }) => byTime.has(ended.since)) ?? lanes.at(-1);
    if (!lane) return;
    const known = lane.byTime.get(ended.since);
    const reason = ended.refusal ?? (ended.aborted && how === 'error' ? `broken off: ${ended.aborted}` : null);
    const facts = { how, route: ended.route, status: ended.status, reason, wait: ended.wait_us, total: ended.total_us };
    // Without a hold the worker still works on it.
    if (known) Object.assign(known, facts, ended.hold_us === null ? {} : { end: ended.since + ended.hold_us });
    else if (ended.hold_us !== null) add(lane, { since: ended.since, end: ended.since + ended.hold_us, ...facts });
  }
}

/** What the log says of a response that its client has not taken. Others were broken off by the worker or by Hostler. */
const BY_CLIENT = new Set(['client', 'client stalled', 'client too slow', 'spool full', 'cache full']);

/** How a request ended, in one word. */
export function outcome({ status, refusal, aborted }) {
  if (refusal && status === 499) return 'left';
  if (refusal) return 'refused';
  if (aborted) return BY_CLIENT.has(aborted) ? 'left' : 'error';
  if (status === 0) return 'left';
  if (status >= 500) return 'error';
  return status >= 400 ? 'client' : 'ok';
}

/** Puts a block into the first track where it overlaps no other. News come late and in any order, so a small overlap is none. */
function add(lane, block) {
  const most = Math.max(1, Math.min(lane.slots, MOST_TRACKS));
  const isFree = (track) => track.slice(-RECENT).every((other) => (other.end ?? Infinity) - SLACK <= block.since || (block.end ?? Infinity) - SLACK <= other.since);
  let index = lane.tracks.findIndex(isFree);
  if (index < 0) index = Math.min(lane.tracks.length, most - 1);
  if (most === 1) cut(lane.tracks[0] ?? [], block);
  block.track = index;
  (lane.tracks[index] ??= []).push(block);
  lane.blocks.push(block);
  lane.byTime.set(block.since, block);
}

/** A worker with one slot has one request: when the next began, the one before was over. */
function cut(track, block) {
  const before = track.at(-1);
  if (before?.how === 'done' && before.end > block.since) before.end = Math.max(before.since, block.since);
}

/** Requests that the lane no longer has are over. How they ended is told later, or not at all under high load. */
function close(lane, open, over) {
  for (const block of lane.blocks) {
    if (block.end !== null || open.has(block.since)) continue;
    block.end = over;
    if (block.how === 'running') block.how = 'done';
  }
}

function prune(lane, now) {
  const isOver = (block) => block.end !== null && now - block.end > KEPT;
  const first = lane.blocks[0];
  if (!first || (!isOver(first) && lane.blocks.length <= MOST)) return;
  const kept = lane.blocks.filter((block) => !isOver(block)).slice(-MOST);
  lane.blocks = kept;
  lane.byTime = new Map(kept.map((block) => [block.since, block]));
  // Tracks that were needed once do not stay for ever.
  lane.tracks = lane.tracks.map((track) => track.filter((block) => lane.byTime.has(block.since)));
  while (lane.tracks.at(-1)?.length === 0) lane.tracks.pop();
}
