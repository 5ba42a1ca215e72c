// The lanes of the live page, without a browser: which lanes there are after pictures of a worker that starts again. Knows no canvas.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Blocks, outcome } from '../../../crates/hostler/src/admin/live/page/blocks.js';

const SECOND = 1e6;
const lane = (id, held = [], more = {}) => ({ id, name: '1', slots: 1, in_use: held.length, tunnels: 0, streams: 0, left: false, out: false, held, ...more });

/** The lanes after each of these pictures. The Status knows a worker 1 all the time. */
function lanesAfter(...pictures) {
  const blocks = new Blocks();
  for (const { at, lanes } of pictures) {
    blocks.take({ waiting: [], lanes }, [], at, ['/']);
    for (const each of blocks.lanes.values()) each.isKept = true;
  }
  return blocks.sorted.map(({ id, blocks: held }) => ({ id, blocks: held.length }));
}

test('a worker that starts again between two pictures goes on in its lane', () => {
  const found = lanesAfter({ at: SECOND, lanes: [lane(7, [[0, 0]])] }, { at: 2 * SECOND, lanes: [lane(8, [[1.5 * SECOND, 0]])] });
  assert.deepEqual(found, [{ id: 8, blocks: 2 }]);
});

test('a worker that boots keeps its lane', () => {
  const found = lanesAfter({ at: SECOND, lanes: [lane(7, [[0, 0]])] }, { at: 2 * SECOND, lanes: [] }, { at: 60 * SECOND, lanes: [] });
  assert.deepEqual(found, [{ id: 7, blocks: 1 }]);
});

test('the lane of a predecessor goes two seconds after its last request', () => {
  const both = { at: SECOND, lanes: [lane(7, [[0, 0]], { left: true }), lane(8)] };
  const after = (at) => lanesAfter(both, { at: 2 * SECOND, lanes: [lane(8)] }, { at, lanes: [lane(8)] }).map(({ id }) => id);
  assert.deepEqual(after(3 * SECOND), [7, 8]);
  assert.deepEqual(after(5 * SECOND), [8]);
});

test('a copy stays as it is while requests go on', () => {
  const blocks = new Blocks();
  blocks.take({ waiting: [[0, 0]], lanes: [lane(7, [[0, 0]])] }, [], SECOND, ['/']);
  const copy = blocks.copy();
  const before = structuredClone(copy);
  const answer = { pool: 'web', lane: '1', since: 0, hold_us: SECOND, ended: SECOND, status: 200, refusal: null };
  const refusal = { ...answer, since: null, status: 503, refusal: 'queue_full' };
  blocks.take({ waiting: [], lanes: [lane(7, [[1.5 * SECOND, 0]], { out: true })] }, [answer, refusal], 2 * SECOND, ['/']);
  assert.deepEqual(copy, before);
  assert.notDeepEqual(blocks.copy(), before);
});

test('another process of Hostler begins with empty lanes, whatever its members are called', () => {
  const blocks = new Blocks();
  const refusal = { pool: 'web', lane: null, since: null, hold_us: null, ended: 3600 * SECOND, status: 503, refusal: 'queue_full' };
  blocks.take({ waiting: [], lanes: [lane(7, [[3600 * SECOND, 0]])] }, [refusal], 3601 * SECOND, ['/']);
  blocks.take({ waiting: [], lanes: [lane(7, [[SECOND, 0]])] }, [], 2 * SECOND, ['/']);
  const [{ blocks: held }] = blocks.sorted;
  assert.deepEqual(held.map(({ since }) => since), [SECOND]);
  assert.deepEqual(blocks.refused, []);
});

test('what ended while the page was hidden ends where the page saw it last', () => {
  const blocks = new Blocks();
  const take = (at, ...lanes) => blocks.take({ waiting: [], lanes }, [], at, ['/']);
  const goes = { ...lane(9, [[5 * SECOND, 0]]), name: '2' };
  take(10 * SECOND, lane(7, [[9 * SECOND, 0]]), goes);
  take(10.1 * SECOND, lane(7, [[9 * SECOND, 0]]), goes);
  take(50 * SECOND, lane(7, [[49 * SECOND, 0]]));
  const ends = () => blocks.sorted.map(({ blocks: held }) => held.map(({ end }) => end));
  assert.deepEqual(ends(), [[10.1 * SECOND, null], [10.1 * SECOND]]);
  // Without a pause, a request has ended a moment before the picture.
  take(50.1 * SECOND, lane(7));
  assert.deepEqual(ends()[0], [10.1 * SECOND, 50.1 * SECOND]);
});

test('the lanes are in the order of their numbers, and are sorted once for a picture and not for each drawing', () => {
  const blocks = new Blocks();
  const named = (id, name) => ({ ...lane(id), name });
  blocks.take({ waiting: [], lanes: [named(7, '10'), named(8, '2'), named(9, '10.0.0.2:80'), named(6, '2')] }, [], SECOND, ['/']);
  assert.deepEqual(blocks.sorted.map(({ id }) => id), [6, 8, 7, 9]);
  assert.equal(blocks.sorted, blocks.sorted);
});

test('a response that the worker has broken off is an error, and the client has not left', () => {
  const how = (aborted) => outcome({ status: 200, aborted });
  assert.deepEqual(['worker', 'file_system', 'stopped'].map(how), ['error', 'error', 'error']);
  assert.deepEqual(['client', 'client stalled', 'spool full'].map(how), ['left', 'left', 'left']);
  assert.equal(how(undefined), 'ok');
  const blocks = new Blocks();
  const broken = { pool: 'web', lane: '1', since: 0, hold_us: SECOND, ended: SECOND, status: 200, aborted: 'worker' };
  blocks.take({ waiting: [], lanes: [lane(7)] }, [broken], 2 * SECOND, ['/']);
  const [{ how: shown, reason }] = blocks.sorted[0].blocks;
  assert.deepEqual([shown, reason], ['error', 'broken off: worker']);
});
