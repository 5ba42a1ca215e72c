// What visitors of the chat can rely on, over real sockets.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { eventually } from '@hostler/testkit';
import { chatFor, enter, folderFor, publicIdOf } from './visitor.mjs';

test('a message goes to all people in the room, and to none in another room', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host, { name: 'Ada' });
  const ben = await enter(t, host, { name: 'Ben' });
  const far = await enter(t, host, { room: 'far-away', name: 'Cleo' });
  const id = ada.say('  hello\r\nthere ');
  const heard = (await ben.told('message')).message;
  assert.deepEqual({ ...heard, at: typeof heard.at }, { seq: 1, id, from: publicIdOf(ada.me), name: 'Ada', text: 'hello\nthere', at: 'number' });
  assert.deepEqual((await ada.told('message')).message, heard);
  far.say('alone');
  await far.hears('alone');
  assert.deepEqual(far.texts, ['alone']);
});

test('a later visitor finds earlier messages, page by page', async (t) => {
  const { host } = await chatFor(t, { limits: { page: 3, says: { burst: 100, perSecond: 100 } } });
  const ada = await enter(t, host);
  for (let number = 1; number <= 8; number += 1) ada.say(`message ${number}`);
  await ada.hears('message 8');
  const ben = await enter(t, host);
  assert.deepEqual(ben.texts, ['message 6', 'message 7', 'message 8']);
  assert.deepEqual([ben.welcome.resumed, ben.welcome.more], [false, true]);
  ben.send({ kind: 'earlier', before: ben.welcome.messages[0].seq });
  const first = await ben.told('earlier');
  assert.deepEqual([first.messages.map(({ text }) => text), first.more], [['message 3', 'message 4', 'message 5'], true]);
  ben.send({ kind: 'earlier', before: first.messages[0].seq });
  const second = await ben.told('earlier', (frame) => frame !== first);
  assert.deepEqual([second.messages.map(({ text }) => text), second.more], [['message 1', 'message 2'], false]);
});

test('a returning visitor gets only the messages after the last one seen', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host);
  ada.say('before');
  const { seq, id } = (await ada.told('message')).message;
  await ada.leave();
  const ben = await enter(t, host);
  ben.say('meanwhile');
  await ben.hears('meanwhile');
  const back = await enter(t, host, { me: ada.me, last: { seq, id } });
  assert.deepEqual([back.welcome.resumed, back.texts], [true, ['meanwhile']]);
  const lost = await enter(t, host, { last: { seq, id: randomUUID() } });
  assert.deepEqual([lost.welcome.resumed, lost.texts], [false, ['before', 'meanwhile']], 'a history that the page does not share begins anew');
});

test('a message that is sent again appears once', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host);
  const id = ada.say('once');
  await ada.hears('once');
  await ada.leave();
  const back = await enter(t, host, { me: ada.me });
  back.say('once', id);
  assert.deepEqual(await back.told('known'), { kind: 'known', id });
  back.say('last');
  await back.hears('last');
  assert.deepEqual(back.texts, ['once', 'last']);
});

test('a person with several tabs is present once, and leaves with the last tab', async (t) => {
  const { host } = await chatFor(t, { limits: { leaving: 50 } });
  const ben = await enter(t, host, { name: 'Ben' });
  const cleo = await enter(t, host, { name: 'Cleo' });
  const first = await enter(t, host, { name: 'Ada' });
  const second = await enter(t, host, { name: 'Ada', me: first.me });
  await eventually('Ada to be there', () => ben.people.includes('Ada'));
  assert.deepEqual(second.people, ['Ada', 'Ben', 'Cleo']);
  const told = ben.frames.length;
  await first.leave();
  await cleo.leave();
  await eventually('Cleo to be gone', () => !ben.people.includes('Cleo')); // the first tab would be missed before that
  second.send({ kind: 'name', name: 'Ada B.' });
  await eventually('the new name', () => ben.people.includes('Ada B.'));
  assert.equal(ben.frames.length, told + 2, 'the first tab was not missed');
  await second.leave();
  await eventually('Ada to be gone', () => ben.people.length === 1);
});

test('a reload is no departure', async (t) => {
  const { host } = await chatFor(t, { limits: { leaving: 60_000 } });
  const ben = await enter(t, host, { name: 'Ben' });
  const ada = await enter(t, host, { name: 'Ada' });
  await eventually('Ada to be there', () => ben.people.includes('Ada'));
  await ada.leave();
  const back = await enter(t, host, { name: 'Ada', me: ada.me });
  back.say('here again');
  await ben.hears('here again');
  assert.deepEqual(ben.frames.filter(({ kind }) => kind === 'people').length, 1);
});

test('the typing notice goes only to the others', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host);
  const ben = await enter(t, host);
  ada.send({ kind: 'typing' });
  assert.deepEqual(await ben.told('typing'), { kind: 'typing', id: publicIdOf(ada.me) });
  ada.send({ kind: 'ping' });
  await ada.told('pong');
  assert.ok(!ada.frames.some(({ kind }) => kind === 'typing'));
});

test('names lose invisible characters, so that a person cannot imitate another', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host, { name: ' A\u202ed\u0000a \n ' });
  assert.deepEqual(ada.people, ['Ada']);
});

test('messages outlive the process, and two processes have the same messages in the same order', async (t) => {
  const folder = await folderFor(t);
  const old = await chatFor(t, { folder });
  const ada = await enter(t, old.host, { name: 'Ada' });
  const id = ada.say('before the restart');
  await ada.hears('before the restart');

  const successor = await chatFor(t, { folder });
  const ben = await enter(t, successor.host, { name: 'Ben' });
  assert.deepEqual(ben.texts, ['before the restart']);
  ada.say('from the old one');
  await ben.hears('from the old one');
  ben.say('from the new one');
  await ada.hears('from the new one');
  assert.deepEqual(ada.messages, ben.messages);

  await old.close();
  assert.deepEqual(await ada.isClosed(), { code: 1001, reason: 'restarting' });
  const back = await enter(t, successor.host, { me: ada.me });
  back.say('before the restart', id);
  await back.told('known');
  back.say('after it');
  await ben.hears('after it');
  assert.deepEqual(ben.texts, ['before the restart', 'from the old one', 'from the new one', 'after it']);
});
