// The frames that a visitor may send. Each one is checked completely before it is used. Knows no sockets.
import { LIMITS } from './limits.js';

const ROOM = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const ID = /^[A-Za-z0-9_-]{16,64}$/;
// Control characters (except line breaks and tabs), and characters that change the direction of the text around them: a
// name with those could imitate another name.
// eslint-disable-next-line no-control-regex -- the expression is for control characters
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

const KINDS = {
  hello: ({ room, me, name, last }) => isRoom(room) && isId(me) && isName(name) && (last === undefined || isPlace(last)) && { room, me, name: nameOf(name), last },
  // A text that is not allowed gets an answer and does not count as an attack: the page would send it again after each
  // disconnection.
  say: ({ id, text }) => isId(id) && typeof text === 'string' && { id, text: isText(text) ? textOf(text) : undefined },
  name: ({ name }) => isName(name) && { name: nameOf(name) },
  typing: () => ({}),
  earlier: ({ before }) => isCount(before) && { before },
  ping: () => ({}),
};

/** The frame, with `kind` and only the fields that belong to it. Undefined if it is invalid. */
export function parseFrame(data) {
  let frame;
  try {
    frame = JSON.parse(data);
  } catch {
    return undefined; // a frame must be JSON
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
