// Who is in a room, on a clock that the test sets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Room } from '../src/room.js';

test('a person who comes back in time has never left, and one who does not has', async (t) => {
  const running = new Set();
  const start = (end) => {
    const timer = { end, unref: () => {} };
    running.add(timer);
    return timer;
  };
  t.mock.method(globalThis, 'setTimeout', start);
  t.mock.method(globalThis, 'clearTimeout', (timer) => running.delete(timer));
  const timeIsOver = () => running.forEach(({ end }) => end());

  const room = await Room.open('lobby', () => ({ before: () => ({ messages: [], more: false }) }));
  const lists = [];
  const ben = { tell: () => {}, tellText: (text) => lists.push(JSON.parse(text).people.map(({ name }) => name)) };
  const ada = { tell: () => {}, tellText: () => {} };
  room.enter(ben, { id: 'ben', name: 'Ben' });
  room.enter(ada, { id: 'ada', name: 'Ada' });
  room.leave(ada, 'ada');
  room.enter(ada, { id: 'ada', name: 'Ada' });
  timeIsOver();
  assert.deepEqual(lists, [['Ben', 'Ada']]);
  room.leave(ada, 'ada');
  timeIsOver();
  assert.deepEqual(lists, [['Ben', 'Ada'], ['Ben']]);
});
