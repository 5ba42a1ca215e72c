// Stores who uses this browser, the visited rooms, and unsent messages. Knows no elements and no sockets.

import { newId } from './conversation.js';

const ME = 'fireside:me';
const NAME = 'fireside:name';
const ROOMS = 'fireside:rooms';
const OUTBOX = 'fireside:outbox:';
const ALWAYS = ['lobby', 'ideas', 'off-topic'];
const REMEMBERED = 12;

// Used where nothing can be stored.
let own;
let given;

/** A secret that identifies the tabs of one person. Other people see only a digest of it. */
export function me() {
  let id = read(localStorage, ME);
  if (typeof id !== 'string' || !/^[0-9a-f]{32}$/.test(id)) write(localStorage, ME, (id = own ??= newId()));
  return id;
}

export function name() {
  const stored = read(localStorage, NAME);
  return typeof stored === 'string' && stored.trim() ? stored : given;
}

export function setName(chosen) {
  given = chosen;
  write(localStorage, NAME, chosen);
}

/** Calls `react` when another tab changes the person's name. */
export function onName(react) {
  addEventListener('storage', ({ key }) => key === NAME && name() && react(name()));
}

export function rooms() {
  const visited = read(localStorage, ROOMS);
  return [...new Set([...ALWAYS, ...(Array.isArray(visited) ? visited : [])])];
}

export function visit(room) {
  const visited = rooms().filter((each) => !ALWAYS.includes(each) && each !== room);
  if (!ALWAYS.includes(room)) write(localStorage, ROOMS, [...visited, room].slice(-REMEMBERED));
}

/** For this tab only. If two tabs sent the same messages, they could not be told apart. */
export function outboxOf(room) {
  return {
    load: () => {
      const kept = read(sessionStorage, OUTBOX + room);
      return Array.isArray(kept) ? kept.filter((each) => typeof each?.id === 'string' && typeof each.text === 'string') : [];
    },
    save: (messages) => write(sessionStorage, OUTBOX + room, messages),
  };
}

function read(storage, key) {
  try {
    return JSON.parse(storage.getItem(key));
  } catch {
    return null; // forbidden, or the value of another page: as if there were none
  }
}

function write(storage, key, value) {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // forbidden or full: the page works without storage
  }
}
