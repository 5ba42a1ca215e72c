// What visitors may not do: the chat refuses it, reports it where it can, and goes on for the others.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { test } from 'node:test';
import { eventually } from '@hostler/testkit';
import { chatFor, connect, enter } from './visitor.mjs';

const ID = 'a'.repeat(32);
const HELLO = { kind: 'hello', room: 'lobby', me: ID, name: 'Ada' };

test('invalid frames end their connection, and other visitors are not affected', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host);
  const first = ['', 'null', '[]', '"x"', '{', '{"kind":5}', '{"kind":"constructor"}', '{"kind":"__proto__"}', JSON.stringify({ kind: 'say', id: ID, text: 'x' })];
  const wrongHellos = [{ room: '../lobby' }, { room: 'a/b' }, { room: '' }, { room: 'UPPER' }, { room: 'x'.repeat(33) }, { room: ['lobby'] }, { me: 'short' }, { me: 7 }, { name: {} }, { name: 'x'.repeat(129) }, { last: null }, { last: { seq: -1, id: ID } }, { last: { seq: 1e300, id: ID } }];
  for (const frame of [...first, ...wrongHellos.map((part) => JSON.stringify({ ...HELLO, ...part }))]) {
    const bad = await connect(t, host);
    bad.send(frame);
    assert.deepEqual(await bad.isClosed(), { code: 1008, reason: 'bad_frame' }, frame);
  }
  for (const frame of [HELLO, { kind: 'say', id: ID, text: ['x'] }, { kind: 'say', id: '../../x', text: 'x' }, { kind: 'earlier', before: 'x' }, { kind: 'name', name: null }]) {
    const bad = await enter(t, host);
    bad.send(frame);
    assert.equal((await bad.isClosed()).code, 1008, JSON.stringify(frame));
  }
  ada.say('still here');
  await ada.hears('still here');
});

test('an invalid text is rejected for good, and its connection stays', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host, { name: '\u202e \u0000' });
  assert.deepEqual(ada.people, ['Somebody']);
  for (const text of ['', ' \n ', '\u202e\u0000', 'x'.repeat(1001)]) {
    const id = ada.say(text);
    await ada.told('unsayable', (frame) => frame.id === id);
  }
  ada.say('x'.repeat(1000));
  await ada.hears('x'.repeat(1000));
});

test('binary, oversized and broken frames are answered with their code', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host);
  const binary = await enter(t, host);
  binary.send(randomBytes(100));
  assert.equal((await binary.isClosed()).code, 1003);
  const large = await enter(t, host);
  large.send('x'.repeat((8 << 10) + 1));
  assert.equal((await large.isClosed()).code, 1009);
  const pieces = await enter(t, host);
  for (let piece = 0; piece < 20; piece += 1) pieces.socket.send('x'.repeat(1000), { fin: false });
  assert.equal((await pieces.isClosed()).code, 1009);
  const broken = await enter(t, host);
  broken.socket._socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
  assert.equal((await broken.isClosed()).code, 1002);
  const noText = await enter(t, host);
  noText.socket._socket.write(Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff]));
  assert.equal((await noText.isClosed()).code, 1007);
  ada.say('still here');
  await ada.hears('still here');
});

test('a broken frame while the chat closes does not keep the others from their closing handshake', async (t) => {
  const { host, close } = await chatFor(t);
  const ada = await enter(t, host);
  const broken = await enter(t, host);
  const closed = close();
  broken.socket._socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff])); // before it has read that it should leave
  await closed;
  assert.deepEqual(await ada.isClosed(), { code: 1001, reason: 'restarting' });
});

test('a refused client that keeps its side of the connection open does not keep the chat from closing', async (t) => {
  const { host, close } = await chatFor(t);
  const [address, port] = host.split(':');
  const socket = connectTcp({ host: address, port, allowHalfOpen: true });
  socket.on('error', () => {}); // a reset is an end as well
  try {
    socket.write('GET /socket HTTP/1.1\r\nHost: a\r\nOrigin: https://elsewhere.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 403 /);
    let closed = false;
    close().then(() => (closed = true));
    await eventually('the chat to be closed', () => closed);
  } finally {
    socket.destroy();
  }
});

test('garbage in place of a handshake breaks nothing', async (t) => {
  const { host } = await chatFor(t);
  const [address, port] = host.split(':');
  for (const text of ['\r\n\r\n', 'GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n', 'GET //[ HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n', randomBytes(300)]) {
    const socket = connectTcp(port, address);
    socket.on('error', () => {}); // a reset is an answer as well
    socket.end(text);
    socket.resume();
    await once(socket, 'close');
  }
  await enter(t, host);
});

test('messages over the rate limit are rejected with a wait time, and accepted when sent again', async (t) => {
  const { host } = await chatFor(t, { limits: { says: { burst: 2, perSecond: 2 } } });
  const ada = await enter(t, host);
  const ids = new Map(Array.from({ length: 8 }, (_, number) => [ada.say(`number ${number}`), `number ${number}`]));
  const refused = await ada.told('refused');
  assert.ok(ids.has(refused.id));
  assert.deepEqual([refused.why, refused.wait > 0 && refused.wait <= 500], ['too_fast', true]);
  await eventually('all to be said', () => {
    for (const frame of ada.frames.filter(({ kind }) => kind === 'refused')) {
      ada.frames.splice(ada.frames.indexOf(frame), 1);
      setTimeout(() => ada.say(ids.get(frame.id), frame.id), frame.wait);
    }
    return ada.texts.length === ids.size;
  });
  assert.deepEqual([...ada.texts].sort(), [...ids.values()]);
});

test('a flood of frames ends its connection', async (t) => {
  const { host } = await chatFor(t);
  const ada = await enter(t, host);
  const flood = await enter(t, host);
  for (let count = 0; count < 2_000; count += 1) flood.send({ kind: 'ping' });
  assert.deepEqual(await flood.isClosed(), { code: 1008, reason: 'too_many_frames' });
  ada.say('still here');
  await ada.hears('still here');
});

test('a page of another site cannot connect, and the site\'s own page and a program can', async (t) => {
  const { host } = await chatFor(t);
  for (const origin of ['https://elsewhere.test', `http://${host}.elsewhere.test`, 'null', 'file://', `http://${host.split(':')[0]}`]) {
    const refused = await connect(t, host, { origin });
    assert.match(refused.error.message, /403/, origin);
  }
  await enter(t, host, { origin: `http://${host}` });
  await enter(t, host);
  await enter(t, host, { origin: 'https://chat.test', headers: { Host: 'chat.test' } });
  await enter(t, host, { origin: 'https://chat.test', headers: { Host: 'Chat.test:443' } });
});

test('rooms, persons and the process have connection limits', async (t) => {
  const { host } = await chatFor(t, { limits: { visitors: 3, tabs: 2, connections: 5 } });
  const ada = await enter(t, host);
  await enter(t, host, { me: ada.me });
  const third = await connect(t, host);
  third.send({ ...HELLO, me: ada.me });
  assert.deepEqual(await third.isClosed(), { code: 1008, reason: 'too_many_tabs' });
  await enter(t, host);
  const fourth = await connect(t, host);
  fourth.send(HELLO);
  assert.deepEqual(await fourth.isClosed(), { code: 1008, reason: 'room_full' });
  await enter(t, host, { room: 'other' });
  await enter(t, host, { room: 'other' });
  assert.match((await connect(t, host)).error.message, /503/);
});

test('a client that sends no hello or answers no ping is disconnected', async (t) => {
  const { host } = await chatFor(t, { limits: { hello: 1_000, heartbeat: 1_500, leaving: 0 } });
  const silent = await connect(t, host);
  const dead = await enter(t, host, { name: 'Dead', autoPong: false });
  const ada = await enter(t, host, { name: 'Ada' });
  assert.deepEqual(await silent.isClosed(), { code: 1008, reason: 'say_hello' });
  await dead.isClosed();
  await eventually('Dead to be gone', () => ada.people.join() === 'Ada');
  assert.equal(ada.closed, undefined);
});

test('a client that does not read is disconnected before it uses much memory', async (t) => {
  const { host } = await chatFor(t, { limits: { leaving: 0, buffered: 200_000, says: { burst: 1e6, perSecond: 1e6 }, frames: { burst: 1e6, perSecond: 1e6 } } });
  const slow = await enter(t, host, { name: 'Slow' });
  slow.socket.pause();
  const ada = await enter(t, host);
  // What the kernel buffers for the slow reader does not count, and that may be megabytes.
  for (let round = 0; round < 2_000 && ada.people.length > 1; round += 1) {
    const last = `${round} ${'x'.repeat(900)}`;
    for (let count = 0; count < 40; count += 1) ada.say(`${count} ${'y'.repeat(900)}`);
    ada.say(last);
    await ada.hears(last);
    ada.frames = ada.frames.filter(({ people }) => people);
  }
  assert.deepEqual(ada.people, ['Ada'], 'the slow one is not there any more');
  assert.equal(ada.closed, undefined);
});

test('the page is served with a policy that lets no foreign script in; all else is a 404 or a 405', async (t) => {
  const { host } = await chatFor(t, { base: '/chat' });
  const get = (path, options) => fetch(`http://${host}${path}`, { redirect: 'manual', ...options });
  const page = await get('/chat/room/some-room');
  assert.match(page.headers.get('content-security-policy'), /default-src 'none'/);
  const html = await page.text();
  assert.match(html, /<base href="\/chat\/">/);
  for (const [, path] of html.matchAll(/(?:href|src)="([a-z]+\.[a-z]+)"/g)) assert.equal((await get(`/chat/${path}`)).status, 200, path);
  const etag = page.headers.get('etag');
  assert.equal((await get('/chat/', { headers: { 'if-none-match': etag } })).status, 304);
  assert.deepEqual([(await get('/chat')).status, (await get('/chat')).headers.get('location')], [308, '/chat/']);
  for (const path of ['/', '/chat/room/', '/chat/room/UP', '/chat/room/a/b', '/chat/server.js', '/chat/..%2fserver.js', '/chat/constructor', '/chat/socket']) assert.equal((await get(path)).status, 404, path);
  assert.equal((await get('/chat/', { method: 'POST' })).status, 405);
  assert.equal(await status(host, '/../../etc/passwd'), 404);
});

/** fetch would remove the dots. */
async function status(host, path) {
  const [hostname, port] = host.split(':');
  const [answer] = await once(request({ hostname, port, path }).end(), 'response');
  answer.resume();
  return answer.statusCode;
}
