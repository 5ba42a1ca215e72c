// The page: ties the conversation, the connection and the elements together.
import { Conversation } from './conversation.js';
import { Link } from './link.js';
import { Messages, element, face } from './messages.js';
import * as person from './person.js';

const PATIENCE = 1_200; // ms without a connection before the page says so
const SETTLING = 6_000; // ms after a reconnection in which others come back too: nobody has joined or left
const TYPES_FOR = 4_000;
const NEAR = 80; // px from the end: whoever is there sees what comes
const REASONS = { room_full: 'This room is full', too_many_tabs: 'Open in too many tabs', too_many_frames: 'Too much at once' };

const at = (id) => document.getElementById(id);
const messages = new Messages({ log: at('log'), outbox: at('outbox') });

let room;
let conversation;
let link;
let people = new Map();
let you;
let settledAt;
let unread = 0;
let patience;
let resend;
let typers = new Map();
let typed = 0;

person.onName((name) => showSelf(name, link?.send({ kind: 'name', name })));
addEventListener('popstate', () => enter(roomInAddress()));
document.addEventListener('visibilitychange', () => isHere() && seen());
wireComposer();
wireSide();
showSelf(person.name() ?? '');
if (person.name()) enter(roomInAddress());
else askName().then(() => enter(roomInAddress()));

// --- the room

function roomInAddress() {
  const path = location.pathname.slice(new URL(document.baseURI).pathname.length);
  return /^room\/([a-z0-9-]+)$/.exec(path)?.[1] ?? 'lobby';
}

function enter(name) {
  if (name === room) return;
  link?.end();
  clearTimeout(resend);
  room = name;
  conversation = new Conversation(person.outboxOf(room));
  people = new Map();
  typers = new Map();
  settledAt = undefined;
  messages.clear();
  messages.showOutbox(conversation.outbox);
  person.visit(room);
  at('room').textContent = room;
  at('text').placeholder = `Message #${room}`;
  at('empty').hidden = at('earlier').hidden = true;
  showRooms();
  showPeople();
  seen();
  setState('connecting', 'Connecting');
  const url = new URL('socket', document.baseURI);
  url.protocol = url.protocol.replace('http', 'ws');
  link = new Link(url, { open: hello, frame: hear, lost });
}

function hello() {
  link.send({ kind: 'hello', room, me: person.me(), name: person.name(), last: conversation.last });
}

function lost(reason) {
  conversation.sendAgain();
  clearTimeout(resend);
  typers.clear();
  showTyping();
  patience ??= setTimeout(() => setState('waiting', REASONS[reason] ?? 'Reconnecting…'), REASONS[reason] ? 0 : PATIENCE);
}

function hear(frame) {
  switch (frame.kind) {
    case 'welcome': return welcome(frame);
    case 'message': return said([frame.message]);
    case 'people': return peopleAre(frame.people);
    case 'typing': return types(frame.id);
    case 'earlier': return earlier(frame);
    case 'known': return settled(frame.id);
    case 'refused': return refused(frame);
  }
}

function welcome(frame) {
  clearTimeout(patience);
  patience = undefined;
  link.settled();
  const isReturn = you !== undefined && conversation.last !== undefined;
  you = messages.you = frame.you;
  if (frame.resumed) {
    said(frame.messages);
  } else {
    conversation.forget();
    messages.silently(() => {
      messages.clear();
      messages.append(conversation.receive(frame.messages));
    });
    at('earlier').hidden = !frame.more;
    toEnd();
  }
  at('empty').hidden = conversation.last !== undefined;
  setState('open', 'Connected');
  settledAt = isReturn ? performance.now() + SETTLING : undefined;
  peopleAre(frame.people, true);
  if (isReturn) setTimeout(() => settledAt !== undefined && peopleAre([...coming.values()]), SETTLING);
  flush();
}

// --- what is said

function said(list) {
  const follow = isAtEnd();
  const news = conversation.receive(list);
  if (news.length > 0) at('empty').hidden = true;
  messages.append(news);
  messages.showOutbox(conversation.outbox);
  for (const { from } of news) typers.delete(from);
  showTyping();
  const others = news.filter(({ from }) => from !== you).length;
  if (follow || others < news.length) toEnd();
  if (others > 0 && (!isHere() || !follow)) {
    unread += others;
    showUnread();
  }
  flush();
}

function flush() {
  const frame = conversation.next();
  if (frame && !link.send(frame)) conversation.sendAgain();
}

function settled(id) {
  conversation.settle(id);
  messages.showOutbox(conversation.outbox);
  flush();
}

function refused({ why, wait }) {
  clearTimeout(resend);
  setState('open', why === 'too_fast' ? 'Slow down a little' : 'Trying again', true);
  resend = setTimeout(() => {
    setState('open', 'Connected');
    conversation.sendAgain();
    flush();
  }, wait);
}

function earlier({ messages: list, more }) {
  const box = at('scroll');
  const fromEnd = box.scrollHeight - box.scrollTop;
  messages.prepend(list);
  box.scrollTop = box.scrollHeight - fromEnd;
  at('earlier').hidden = !more;
  at('earlier').disabled = false;
}

// --- who is here

let coming = new Map();

/** After a reconnection the others come back one by one: those who were here stay on the list meanwhile, without a note. */
function peopleAre(list, isFirst = false) {
  coming = new Map(list.map((each) => [each.id, each]));
  const next = new Map(coming);
  if (settledAt !== undefined && performance.now() < settledAt) {
    for (const [id, each] of people) if (!next.has(id)) next.set(id, each);
  } else {
    settledAt = undefined;
  }
  const follow = isAtEnd();
  if (!isFirst && people.size > 0) {
    for (const [id, { name }] of next) if (!people.has(id) && id !== you) messages.note(`${name} came in`);
    for (const [id, { name }] of people) if (!next.has(id)) messages.note(`${name} left`);
    for (const [id, { name }] of next) {
      const before = people.get(id)?.name;
      if (before && before !== name && id !== you) messages.note(`${before} is now ${name}`);
    }
    if (follow) toEnd();
  }
  people = next;
  showPeople();
}

function types(id) {
  clearTimeout(typers.get(id));
  typers.set(id, setTimeout(() => typers.delete(id) && showTyping(), TYPES_FOR));
  showTyping();
}

function showTyping() {
  const names = [...typers.keys()].map((id) => people.get(id)?.name).filter(Boolean);
  const who = names.length > 2 ? 'Several people are' : names.length === 2 ? `${names.join(' and ')} are` : `${names[0]} is`;
  at('typing').textContent = names.length > 0 ? `${who} typing…` : '';
}

function showPeople() {
  const sorted = [...people.values()].sort((a, b) => (b.id === you) - (a.id === you) || a.name.localeCompare(b.name));
  at('count').textContent = sorted.length || '';
  at('people').replaceChildren(
    ...sorted.map(({ id, name }) => element('li', '', face(id, name), element('span', 'name', name), ...(id === you ? [element('small', '', 'you')] : []))),
  );
  const faces = sorted.slice(0, 4).map(({ id, name }) => face(id, name));
  if (sorted.length > 4) faces.push(element('span', 'face more', `+${sorted.length - 4}`));
  at('faces').replaceChildren(...faces);
  if (you) at('self-face').replaceWith(Object.assign(face(you, person.name() ?? '?'), { id: 'self-face' }));
}

// --- the rest of the page

function setState(state, text, isLoud = false) {
  at('state').dataset.state = isLoud ? 'busy' : state;
  if (at('state-text').textContent !== text) at('state-text').textContent = text;
}

function isHere() {
  return document.visibilityState === 'visible' && isAtEnd();
}

function isAtEnd() {
  const { scrollHeight, scrollTop, clientHeight } = at('scroll');
  return scrollHeight - scrollTop - clientHeight < NEAR;
}

function toEnd() {
  at('scroll').scrollTop = at('scroll').scrollHeight;
}

function seen() {
  unread = 0;
  showUnread();
}

function showUnread() {
  document.title = `${unread > 0 ? `(${unread}) ` : ''}#${room} · Fireside`;
  at('newer').hidden = unread === 0;
  at('newer').textContent = unread === 1 ? '1 new message' : `${unread} new messages`;
}

function showSelf(name) {
  at('self-name').textContent = name;
  at('self-face').textContent = [...name][0]?.toUpperCase() ?? '';
  showPeople();
}

function showRooms() {
  at('rooms').replaceChildren(
    ...person.rooms().map((name) => {
      const anchor = element('a', '', element('span', 'hash', '#'), name);
      anchor.href = `room/${name}`;
      if (name === room) anchor.setAttribute('aria-current', 'page');
      return element('li', '', anchor);
    }),
  );
}

async function askName() {
  const dialog = at('who');
  at('who-name').value = person.name() ?? '';
  dialog.showModal();
  at('who-name').select();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  const name = at('who-name').value.replace(/\s+/g, ' ').trim() || person.name() || 'Somebody';
  person.setName(name);
  showSelf(name);
  link?.send({ kind: 'name', name });
  at('text').focus();
}

function wireComposer() {
  const text = at('text');
  const fit = () => {
    text.style.height = 'auto';
    text.style.height = `${text.scrollHeight}px`;
    const left = text.maxLength - text.value.length;
    at('left').textContent = left < 200 ? `${left} characters left` : '';
    at('send').disabled = text.value.trim() === '';
  };
  text.addEventListener('input', () => {
    fit();
    if (performance.now() - typed < TYPES_FOR / 2 || text.value.trim() === '') return;
    typed = performance.now();
    link?.send({ kind: 'typing' });
  });
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    at('composer').requestSubmit();
  });
  at('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    if (text.value.trim() === '' || !conversation) return;
    conversation.compose(text.value.trim());
    text.value = '';
    typed = 0;
    fit();
    messages.showOutbox(conversation.outbox);
    toEnd();
    flush();
    text.focus();
  });
  fit();
}

function wireSide() {
  const open = (yes) => {
    document.body.classList.toggle('side-open', yes);
    at('menu').setAttribute('aria-expanded', String(yes));
    if (yes) at('rooms').querySelector('a')?.focus();
  };
  at('menu').addEventListener('click', () => open(!document.body.classList.contains('side-open')));
  at('veil').addEventListener('click', () => open(false));
  document.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !document.body.classList.contains('side-open')) return;
    open(false);
    at('menu').focus();
  });
  const go = (name) => {
    history.pushState(null, '', `room/${name}`);
    enter(name);
    open(false);
    at('text').focus();
  };
  at('rooms').addEventListener('click', (event) => {
    const anchor = event.target.closest('a');
    if (!anchor || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(anchor.getAttribute('href').slice('room/'.length));
  });
  at('new-room').addEventListener('submit', (event) => {
    event.preventDefault();
    const name = at('room-name').value.toLowerCase().normalize('NFKD').replace(/[^a-z0-9]+/g, '-').slice(0, 32).replace(/^-+|-+$/g, '');
    if (!name) return;
    at('room-name').value = '';
    go(name);
  });
  at('self').addEventListener('click', askName);
  at('scroll').addEventListener('scroll', () => isHere() && unread > 0 && seen(), { passive: true });
  at('newer').addEventListener('click', () => toEnd());
  at('earlier').addEventListener('click', () => (at('earlier').disabled = link.send({ kind: 'earlier', before: messages.oldest })));
  at('share').addEventListener('click', share);
}

async function share() {
  const label = at('share').querySelector('span');
  const url = new URL(`room/${room}`, document.baseURI).href;
  try {
    await navigator.clipboard.writeText(url);
    label.textContent = 'Copied';
  } catch {
    prompt('The address of this room', url); // without TLS a page may not write to the clipboard
  }
  setTimeout(() => (label.textContent = 'Copy link'), 2_000);
}
