// The open rooms of this process, and their folder. Knows no connections.
import { watch } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { History, roomOf } from './history.js';
import { LIMITS } from './limits.js';
import { Room } from './room.js';

const LOOK_AGAIN = 1000;

export class Rooms {
  #folder;
  #limits;
  #rooms = new Map(); // name -> { room: a promise, visits }
  #stopWatching;

  static async in(folder, limits = LIMITS) {
    await mkdir(folder, { recursive: true });
    return new Rooms(folder, limits);
  }

  constructor(folder, limits) {
    this.#folder = folder;
    this.#limits = limits;
    this.#stopWatching = this.#watch();
  }

  /** Adds a visitor to the room with this name, with all its messages, or returns the reason of a refusal. */
  async enter(name, visitor, person) {
    const opened = this.#rooms.get(name) ?? this.#open(name);
    opened.visits += 1; // counted before any await, so that the room is not closed meanwhile
    try {
      const room = await opened.room;
      await room.catchUp();
      const refusal = room.enter(visitor, person);
      if (refusal) this.#release(name, opened);
      return { room, refusal, leave: () => this.#leave(name, opened, room, visitor, person.id) };
    } catch (error) {
      this.#release(name, opened);
      throw error;
    }
  }

  /** Appends a message to the room's history. A new room may remove the one that has been silent longest. */
  async say(room, message) {
    if (room.isSilent) await this.#makePlaceFor(room.name);
    await room.say(message);
  }

  stop() {
    this.#stopWatching();
  }

  #open(name) {
    const history = (heard) => History.open(this.#folder, name, { limits: this.#limits, heard });
    const opened = { room: Room.open(name, history, this.#limits), visits: 0 };
    this.#rooms.set(name, opened);
    return opened;
  }

  #leave(name, opened, room, visitor, id) {
    room.leave(visitor, id);
    this.#release(name, opened);
  }

  /** Closes a room without visitors. For the next visitor it is opened again from its files. */
  #release(name, opened) {
    opened.visits -= 1;
    if (opened.visits === 0) this.#rooms.delete(name);
  }

  /** The process before or after this one writes into the same folder. */
  #watch() {
    const look = (file) => {
      const name = file ? roomOf(file) : undefined;
      for (const each of name ? [name] : this.#rooms.keys()) this.#catchUp(each);
    };
    try {
      const watcher = watch(this.#folder, (_, file) => look(file));
      watcher.on('error', (error) => console.error(`the folder is not watched any more: ${error.message}`));
      watcher.unref();
      return () => watcher.close();
    } catch (error) {
      console.error(`the folder cannot be watched (${error.message}); it is checked every second`);
      const timer = setInterval(look, LOOK_AGAIN);
      timer.unref();
      return () => clearInterval(timer);
    }
  }

  async #catchUp(name) {
    try {
      await (await this.#rooms.get(name)?.room)?.catchUp();
    } catch (error) {
      console.error(`${name} cannot be read: ${error.message}`);
    }
  }

  async #makePlaceFor(name) {
    const files = (await readdir(this.#folder)).filter((file) => roomOf(file));
    const others = new Map();
    for (const file of files) {
      const room = roomOf(file);
      if (room === name) continue;
      const { mtimeMs = 0 } = (await stat(join(this.#folder, file)).catch(() => undefined)) ?? {};
      others.set(room, Math.max(mtimeMs, others.get(room) ?? 0));
    }
    const silent = [...others].filter(([room]) => !this.#rooms.has(room)).sort(([, a], [, b]) => a - b);
    const tooMany = Math.max(0, others.size + 1 - this.#limits.rooms);
    for (const [room] of silent.slice(0, tooMany)) {
      for (const file of files.filter((each) => roomOf(each) === room)) await rm(join(this.#folder, file), { force: true });
    }
  }
}
