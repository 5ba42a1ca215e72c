// One connection: what it may do, and how often. All input is untrusted.
import { createHash } from 'node:crypto';
import { Bucket } from './bucket.js';
import { parseFrame } from './frames.js';
import { LIMITS } from './limits.js';

const UNSUPPORTED = 1003;
const POLICY = 1008;
const INTERNAL = 1011;

export class Visit {
  #socket;
  #rooms;
  #limits;
  #frames;
  #says;
  #typing;
  #id;
  #place; // { room, leave } once it is in
  #hello;
  #saying = Promise.resolve();
  #alive = true;

  constructor(socket, rooms, limits = LIMITS) {
    this.#socket = socket;
    this.#rooms = rooms;
    this.#limits = limits;
    this.#frames = new Bucket(limits.frames);
    this.#says = new Bucket(limits.says);
    this.#typing = new Bucket({ burst: 1, perSecond: 1 });
    this.#hello = setTimeout(() => this.#end(POLICY, 'say_hello'), limits.hello);
    socket.on('message', (data, isBinary) => this.#hear(data, isBinary));
    socket.on('pong', () => (this.#alive = true));
    socket.on('close', () => this.#gone());
    socket.on('error', () => {}); // a broken frame; ws answers and closes by itself
  }

  /** Called regularly for each connection: one that has not answered the last ping is gone, whatever TCP reports. */
  beat() {
    if (!this.#alive) return this.#socket.terminate();
    this.#alive = false;
    this.#socket.ping();
  }

  tell(frame) {
    this.tellText(JSON.stringify(frame));
  }

  /** Messages for a reader that is too slow would fill our memory. So it is disconnected, and gets what it missed when it reconnects. */
  tellText(text) {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > this.#limits.buffered) return this.#socket.terminate();
    this.#socket.send(text);
  }

  async #hear(data, isBinary) {
    if (this.#frames.take() > 0) return this.#end(POLICY, 'too_many_frames');
    if (isBinary) return this.#end(UNSUPPORTED, 'text_only');
    const frame = parseFrame(data);
    if (!frame || (frame.kind === 'hello') === Boolean(this.#id)) return this.#end(POLICY, 'bad_frame');
    try {
      await this.#follow(frame);
    } catch (error) {
      console.error(error);
      this.#end(INTERNAL, 'try_again');
    }
  }

  #follow(frame) {
    switch (frame.kind) {
      case 'hello': return this.#enter(frame);
      case 'ping': return this.tell({ kind: 'pong' });
    }
    if (!this.#place) return undefined; // not in the room yet; a page waits for its welcome
    const { room } = this.#place;
    switch (frame.kind) {
      case 'say': return (this.#saying = this.#saying.then(() => this.#say(room, frame))); // in the order in which they came
      case 'name': return room.rename(this.#id, frame.name);
      case 'typing': return this.#typing.take() === 0 && room.types(this, this.#id);
      case 'earlier': return this.tell({ kind: 'earlier', ...room.earlier(frame.before) });
    }
  }

  async #enter({ room: name, me, name: person, last }) {
    clearTimeout(this.#hello);
    this.#id = publicId(me);
    const { refusal, ...place } = await this.#rooms.enter(name, this, { id: this.#id, name: person, last });
    if (refusal) return this.#end(POLICY, refusal);
    this.#place = place;
    if (this.#socket.readyState !== this.#socket.OPEN) this.#gone(); // it left while it was entering
  }

  async #say(room, { id, text }) {
    if (text === undefined) return this.tell({ kind: 'unsayable', id });
    if (room.isKnown(id)) return this.tell({ kind: 'known', id }); // sent before the connection broke
    const wait = this.#says.take();
    if (wait > 0) return this.tell({ kind: 'refused', id, why: 'too_fast', wait });
    try {
      await this.#rooms.say(room, { id, from: this.#id, name: room.nameOf(this.#id), text, at: Date.now() });
    } catch (error) {
      console.error(`a message could not be kept: ${error.message}`);
      this.tell({ kind: 'refused', id, why: 'not_kept', wait: 5_000 });
    }
  }

  #gone() {
    clearTimeout(this.#hello);
    this.#place?.leave();
    this.#place = undefined;
  }

  #end(code, reason) {
    this.#socket.close(code, reason);
  }
}

/** What others see instead of the secret of a person's tabs. */
function publicId(secret) {
  return createHash('sha256').update(secret).digest('base64url').slice(0, 16);
}
