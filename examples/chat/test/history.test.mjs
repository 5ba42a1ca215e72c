// Messages are kept, within limits, whatever happens to the processes that write them.
import assert from 'node:assert/strict';
import { appendFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { History } from '../src/history.js';
import { LIMITS } from '../src/limits.js';
import { Rooms } from '../src/rooms.js';
import { folderFor } from './visitor.mjs';

const limits = { ...LIMITS, segment: 5 };
const message = (number) => ({ id: `message-${number}`, text: `text ${number}` });
const texts = (history) => history.before().messages.map(({ text }) => text);

test('two files are kept, and a number is never given twice', async (t) => {
  const folder = await folderFor(t);
  const history = await History.open(folder, 'a', { limits });
  for (let number = 1; number <= 23; number += 1) await history.append(message(number));
  assert.deepEqual((await readdir(folder)).sort(), ['a.4.jsonl', 'a.5.jsonl']);
  assert.deepEqual(history.before().messages.map(({ seq }) => seq), [16, 17, 18, 19, 20, 21, 22, 23]);
  assert.deepEqual(texts(history), [16, 17, 18, 19, 20, 21, 22, 23].map((number) => `text ${number}`));
  const again = await History.open(folder, 'a', { limits });
  assert.deepEqual(again.before(), history.before());
});

test('two writers at once lose no message, repeat none, and keep one order', async (t) => {
  const folder = await folderFor(t);
  const heard = [[], []];
  const open = (index) => History.open(folder, 'a', { limits, heard: (each) => heard[index].push(each) });
  const writers = [await open(0), await open(1)];
  const wanted = [];
  for (let round = 0; round < 12; round += 1) {
    const each = [`${round}-left`, `${round}-right`, `${round}-both`];
    wanted.push(...each.map((number) => message(number).id));
    await Promise.all([writers[0].append(message(each[0])), writers[1].append(message(each[1])), ...writers.map((writer) => writer.append(message(each[2])))]);
  }
  await Promise.all(writers.map((writer) => writer.catchUp()));
  assert.deepEqual(heard[0], heard[1]);
  assert.deepEqual(heard[0].map(({ id }) => id).sort(), wanted.sort());
});

test('a line that a crash cut short is skipped, and the lines after it are read', async (t) => {
  const folder = await folderFor(t);
  const history = await History.open(folder, 'a', { limits });
  await history.append(message(1));
  await appendFile(join(folder, 'a.1.jsonl'), '\n{"id":"torn","te');
  await history.catchUp();
  await history.append(message(2));
  assert.deepEqual(texts(history), ['text 1', 'text 2']);
  assert.deepEqual((await History.open(folder, 'a', { limits })).before(), history.before());
});

test('an invalid file is skipped', async (t) => {
  const folder = await folderFor(t);
  await writeFile(join(folder, 'a.1.jsonl'), Buffer.concat([Buffer.from('null\n5\n[]\n{"id":7}\n'), Buffer.alloc(1000, 0xff)]));
  const history = await History.open(folder, 'a', { limits });
  await history.append(message(1));
  await history.append(message(2));
  assert.deepEqual(texts(history), ['text 1', 'text 2']);
});

test('when the folder is emptied under a running process, the room goes on', async (t) => {
  const folder = await folderFor(t);
  const history = await History.open(folder, 'a', { limits });
  await history.append(message(1));
  await rm(join(folder, 'a.1.jsonl'));
  await history.append(message(2));
  assert.deepEqual(texts(history), ['text 1', 'text 2']);
  await writeFile(join(folder, 'a.2.jsonl'), '');
  await history.append(message(3));
  assert.ok(history.has('message-3'));
});

test('a new room beyond the number that is kept pushes out the one that was silent longest', async (t) => {
  const folder = await folderFor(t);
  const rooms = await Rooms.in(folder, { ...limits, rooms: 3 });
  t.after(() => rooms.stop());
  const visitor = { tell: () => {}, tellText: () => {} };
  for (const name of ['first', 'second', 'third', 'fourth']) {
    const { room, leave } = await rooms.enter(name, visitor, { id: 'x', name: 'X' });
    await rooms.say(room, message(name));
    leave();
  }
  assert.deepEqual((await readdir(folder)).sort(), ['fourth.1.jsonl', 'second.1.jsonl', 'third.1.jsonl']);
});
