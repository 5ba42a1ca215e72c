// A visitor without a browser: enters a room and collects frames. Knows nothing of the server's code.
import { once } from 'node:events';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@hostler/testkit';
import { WebSocket } from 'ws';
import { createChat } from '../src/chat.js';

/** A running chat on a free port. It ends with the test. */
export async function chatFor(t, options = {}) {
  const folder = options.folder ?? (await folderFor(t));
  const chat = await createChat({ folder, ...options });
  chat.server.listen(0, '127.0.0.1');
  await once(chat.server, 'listening');
  let closing;
  const close = () => (closing ??= chat.close());
  beforeItGoes(folder, close);
  return { close, folder, host: `127.0.0.1:${chat.server.address().port}` };
}

const writers = new Map(); // folder -> functions that end its writers

/** `end` is called before the folder is removed. */
export function beforeItGoes(folder, end) {
  writers.get(folder).push(end);
}

export async function folderFor(t) {
  const folder = await mkdtemp(join(tmpdir(), 'chat-'));
  writers.set(folder, []);
  t.after(async () => {
    await Promise.all(writers.get(folder).map((close) => close()));
    await rm(folder, { recursive: true, force: true });
  });
  return folder;
}

export function publicIdOf(me) {
  return createHash('sha256').update(me).digest('base64url').slice(0, 16);
}

/** A connection that has sent nothing yet. */
export async function connect(t, host, { path = '/socket', ...options } = {}) {
  const socket = new WebSocket(`ws://${host}${path}`, options);
  const visitor = new Visitor(socket);
  t.after(() => socket.terminate());
  await new Promise((resolve) => socket.once('open', resolve).once('close', resolve));
  return visitor;
}

/** A connection that is in the room. */
export async function enter(t, host, { room = 'lobby', name = 'Ada', me = randomUUID(), last, ...options } = {}) {
  const visitor = await connect(t, host, options);
  visitor.send({ kind: 'hello', room, me, name, last });
  visitor.welcome = await visitor.told('welcome');
  visitor.me = me;
  return visitor;
}

class Visitor {
  socket;
  frames = [];
  closed;

  constructor(socket) {
    this.socket = socket;
    socket.on('message', (data) => this.frames.push(JSON.parse(data)));
    socket.on('error', (error) => (this.error = error));
    socket.on('close', (code, reason) => (this.closed = { code, reason: String(reason) }));
  }

  send(frame) {
    this.socket.send(typeof frame === 'string' || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame));
  }

  say(text, id = randomUUID()) {
    this.send({ kind: 'say', id, text });
    return id;
  }

  /** The texts it has received, in order, from its welcome on. */
  get texts() {
    return this.messages.map(({ text }) => text);
  }

  get messages() {
    return this.frames.flatMap((frame) => (frame.kind === 'message' ? [frame.message] : frame.kind === 'welcome' ? frame.messages : []));
  }

  /** The first frame of this kind for which `fits` returns true. */
  told(kind, fits = () => true) {
    return eventually(`a frame "${kind}"`, () => {
      if (this.closed) throw new Error(`closed: ${JSON.stringify(this.closed)}`);
      return this.frames.find((frame) => frame.kind === kind && fits(frame));
    });
  }

  hears(text) {
    return eventually(`"${text}" among ${JSON.stringify(this.texts)}`, () => this.texts.includes(text));
  }

  /** The people in the last list it has received. */
  get people() {
    const last = this.frames.findLast(({ people }) => people);
    return last.people.map(({ name }) => name).sort();
  }

  isClosed() {
    return eventually('the connection to be closed', () => this.closed);
  }

  async leave() {
    this.socket.close();
    await this.isClosed();
  }
}
