// What a visitor may send: each frame is checked whole before anything is done with it. Knows no sockets.
import { LIMITS } from './limits.js';

const ROOM = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const ID = /^[A-Za-z0-9_-]{16,64}$/;
// Controls (but for line breaks and tabs) and what turns the direction of the text around it: such a name could pose as another's.
// eslint-disable-next-line no-control-regex -- they are what is meant
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

const KINDS = {
  hello: ({ room, me, name, last }) => isRoom(room) && isId(me) && isName(name) && (last === undefined || isPlace(last)) && { room, me, name: nameOf(name), last },
  // A text that cannot be said is answered, not taken for an attack: a page would send it again after each break.
  say: ({ id, text }) => isId(id) && typeof text === 'string' && { id, text: isText(text) ? textOf(text) : undefined },
  name: ({ name }) => isName(name) && { name: nameOf(name) },
  typing: () => ({}),
  earlier: ({ before }) => isCount(before) && { before },
  ping: () => ({}),
};

/** The frame, with `kind` and nothing but what belongs to it; or undefined. */
export function parseFrame(data) {
  let frame;
  try {
    frame = JSON.parse(data);
  } catch {
    return undefined; // no JSON is no frame
  }
  if (frame === null || typeof frame !== 'object' || typeof frame.kind !== 'string' || !Object.hasOwn(KINDS, frame.kind)) return undefined;
  const parts = KINDS[frame.kind](frame);
  return parts ? { kind: frame.kind, ...parts } : undefined;
}

export function isRoom(room) {
  return typeof room === 'string' && ROOM.test(room);
}

function isId(id) {
  return typeof id === 'string' && ID.test(id);
}

function isName(name) {
  return typeof name === 'string' && name.length <= 4 * LIMITS.name;
}

function isText(text) {
  return text.length <= LIMITS.text && textOf(text).length > 0;
}

function isPlace(last) {
  return last !== null && typeof last === 'object' && isCount(last.seq) && isId(last.id);
}

function isCount(number) {
  return Number.isSafeInteger(number) && number >= 0;
}

function nameOf(name) {
  return name.toWellFormed().replace(UNSEEN, '').replace(/\s+/g, ' ').trim().slice(0, LIMITS.name).toWellFormed() || 'Somebody';
}

function textOf(text) {
  return text.toWellFormed().replaceAll('\r\n', '\n').replace(UNSEEN, '').trim();
}
