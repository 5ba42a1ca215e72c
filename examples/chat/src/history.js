// The messages of a room, in append-only files of JSON lines. Knows no people and no connections.
import { appendFile, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from './limits.js';

const LINE_BREAK = 10;
const TRIES = 5;

/**
 * The files decide, and the order of their lines is the order of the room: a message counts once it was read back. So two
 * processes may write at the same time, as they do while one replaces the other, and both see the same.
 *
 * A file holds `segment` lines, then the next file begins. A line beyond that does not count, and its writer writes it again
 * into the next file. The number of a message is (file - 1) * segment + line. The last two files are kept.
 */
export class History {
  #folder;
  #name;
  #limits;
  #heard;
  #file = 1;
  #offset = 0; // in that file; everything before was read
  #lines = 0; // of that file
  #messages = []; // of the files that are kept
  #ids = new Set(); // of these messages
  #reading = Promise.resolve();

  /** `heard` is called with each message once, in order. */
  static async open(folder, name, { limits = LIMITS, heard = () => {} } = {}) {
    const history = new History(folder, name, { limits, heard });
    const files = await filesOf(folder, name);
    if (files.length > 0) history.#file = files.at(-2) ?? files.at(-1);
    await history.catchUp();
    return history;
  }

  constructor(folder, name, { limits, heard }) {
    this.#folder = folder;
    this.#name = name;
    this.#limits = limits;
    this.#heard = heard;
  }

  get isEmpty() {
    return this.#messages.length === 0;
  }

  has(id) {
    return this.#ids.has(id);
  }

  /** Resolves once the message has its number. A process that dies before has confirmed nothing. */
  async append(message) {
    for (let tries = 0; tries < TRIES; tries += 1) {
      // The leading line break ends an unfinished line of a process that died. Each line is written with one call, so
      // lines never mix.
      await appendFile(this.#path(this.#file), `\n${JSON.stringify(message)}\n`);
      await this.catchUp();
      if (this.has(message.id)) return;
    }
    throw new Error(`${this.#path(this.#file)} does not contain the line that was written`);
  }

  /** Reads the lines that any process has written since the last read. */
  catchUp() {
    const next = this.#reading.then(() => this.#read());
    this.#reading = next.catch(() => {}); // the caller gets the error; the next read starts again
    return next;
  }

  /** The messages after the last one that a page has, if that one is known and not too old. */
  after({ seq, id }) {
    const at = this.#messages.findLastIndex((message) => message.seq === seq && message.id === id);
    if (at < 0 || this.#messages.length - at - 1 > this.#limits.resume) return undefined;
    return this.#messages.slice(at + 1);
  }

  /** The last messages before this number, and whether there are more. */
  before(seq = Infinity) {
    const earlier = this.#messages.filter((message) => message.seq < seq);
    const messages = earlier.slice(-this.#limits.page);
    return { messages, more: messages.length < earlier.length };
  }

  async #read() {
    for (;;) {
      const bytes = await readFrom(this.#path(this.#file), this.#offset);
      if (bytes === undefined && this.#offset > 0) {
        await this.#beginNextFile(); // another program has removed or emptied it
        continue;
      }
      const end = (bytes?.lastIndexOf(LINE_BREAK) ?? -1) + 1;
      this.#offset += end;
      for (const line of bytes?.toString('utf8', 0, end).split('\n') ?? []) this.#take(line);
      if (this.#lines < this.#limits.segment) return;
      await this.#beginNextFile();
    }
  }

  #take(line) {
    if (line === '' || this.#lines >= this.#limits.segment) return;
    this.#lines += 1;
    const message = parsed(line);
    if (!message || this.#ids.has(message.id)) return; // sent twice, once to each of two processes
    this.#ids.add(message.id);
    this.#messages.push({ seq: (this.#file - 1) * this.#limits.segment + this.#lines, ...message });
    this.#heard(this.#messages.at(-1));
  }

  async #beginNextFile() {
    this.#file += 1;
    this.#offset = 0;
    this.#lines = 0;
    const kept = this.#messages.findIndex(({ seq }) => seq > (this.#file - 2) * this.#limits.segment);
    for (const { id } of this.#messages.splice(0, kept < 0 ? this.#messages.length : kept)) this.#ids.delete(id);
    const old = (await filesOf(this.#folder, this.#name)).filter((file) => file < this.#file - 1);
    for (const file of old) await rm(this.#path(file), { force: true });
  }

  #path(file) {
    return join(this.#folder, `${this.#name}.${file}.jsonl`);
  }
}

/** The room of a file in the folder, or undefined. */
export function roomOf(file) {
  return /^([a-z0-9-]+)\.\d{1,9}\.jsonl$/.exec(file)?.[1];
}

/** The numbers of a room's files, in order. */
export async function filesOf(folder, name) {
  const names = (await readdir(folder)).filter((file) => roomOf(file) === name);
  return names.map((file) => Number(file.split('.')[1])).sort((a, b) => a - b);
}

function parsed(line) {
  try {
    const message = JSON.parse(line);
    return typeof message?.id === 'string' ? message : undefined;
  } catch {
    return undefined; // incomplete because its writer died, which has confirmed nothing
  }
}

/** The bytes of the file from `offset` on. Undefined if the file does not exist. */
async function readFrom(path, offset) {
  let file;
  try {
    file = await open(path);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { size } = await file.stat();
    if (size < offset) return undefined; // another file with this name
    const bytes = Buffer.alloc(size - offset);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, offset + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}
