// The page's conversation: what is sent again after a disconnection, and what is not shown twice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Conversation } from '../public/conversation.js';

const at = (seq, id = `m${seq}`) => ({ seq, id, text: `text ${seq}` });

test('messages are sent one by one, each after the one before has come back', () => {
  const talk = new Conversation();
  const [first, second] = [talk.compose('one'), talk.compose('two')];
  assert.equal(talk.next().id, first.id);
  assert.equal(talk.next(), undefined, 'the second waits for the first');
  talk.receive([at(1, first.id)]);
  assert.equal(talk.next().id, second.id);
  talk.sendAgain();
  assert.equal(talk.next().id, second.id);
  talk.settle(second.id);
  assert.deepEqual([talk.next(), talk.outbox], [undefined, []]);
});

test('a message that the page has seen is not shown again', () => {
  const talk = new Conversation();
  assert.deepEqual(talk.receive([at(1), at(2)]).map(({ seq }) => seq), [1, 2]);
  assert.deepEqual(talk.receive([at(1), at(2), at(3), at(4, 'm1')]).map(({ seq }) => seq), [3]);
  assert.deepEqual(talk.last, { seq: 3, id: 'm3' });
  talk.forget();
  assert.deepEqual(talk.receive([at(1)]).map(({ seq }) => seq), [1]);
});

test('an unsent message is still there after a reload', () => {
  let kept = [];
  const store = { load: () => kept, save: (messages) => (kept = messages) };
  const { id } = new Conversation(store).compose('later');
  const reloaded = new Conversation(store);
  assert.equal(reloaded.next().id, id);
  reloaded.settle(id);
  assert.deepEqual(new Conversation(store).outbox, []);
});
