// The page: connects the conversation and the socket with the elements.
import { wireComposer } from './composer.js';
import { Conversation } from './conversation.js';
import { Link } from './link.js';
import { Messages } from './messages.js';
import { at, isAtEnd, isHere, setState, toEnd } from './page.js';
import { People } from './people.js';
import * as person from './person.js';
import { askName, share, showRooms, showSelf, wireSide } from './side.js';

const NOTICE_DELAY = 1_200; // ms without a connection before the page says so
const REASONS = { room_full: 'This room is full', too_many_tabs: 'Open in too many tabs', too_many_frames: 'Too much at once' };

const messages = new Messages({ log: at('log'), outbox: at('outbox') });
const people = new People((text) => messages.note(text));

let room;
let conversation;
let link;
let you;
let isIn = false;
let unread = 0;
let noticeTimer;
let resend;

wireComposer({ send: compose, types: () => isIn && link.send({ kind: 'typing' }) });
wireSide({ go, named });
at('newer').addEventListener('click', toEnd);
at('scroll').addEventListener('scroll', () => unread > 0 && isHere() && setUnread(0), { passive: true });
at('earlier').addEventListener('click', () => (at('earlier').disabled = link.send({ kind: 'earlier', before: messages.oldest })));
at('share').addEventListener('click', () => share(room));
document.addEventListener('visibilitychange', () => isHere() && setUnread(0));
addEventListener('popstate', () => enter(roomInAddress()));
person.onName(named);
showSelf(person.name() ?? '');
showRooms(roomInAddress());
if (!person.name()) showSelf(await askName());
enter(roomInAddress());

function roomInAddress() {
  const path = location.pathname.slice(new URL(document.baseURI).pathname.length);
  return /^room\/([a-z0-9-]+)$/.exec(path)?.[1] ?? 'lobby';
}

function go(name) {
  history.pushState(null, '', `room/${name}`);
  enter(name);
}

function enter(name) {
  if (name === room) return;
  out();
  link?.end();
  people.end();
  room = name;
  conversation = new Conversation(person.outboxOf(room));
  messages.clear();
  messages.showOutbox(conversation.outbox);
  person.visit(room);
  showRooms(room);
  at('room').textContent = room;
  at('text').placeholder = `Message #${room}`;
  at('empty').hidden = at('earlier').hidden = true;
  setUnread(0);
  setState('connecting', 'Connecting');
  const url = new URL('socket', document.baseURI);
  url.protocol = url.protocol.replace('http', 'ws');
  link = new Link(url, { open: hello, frame: hear, lost });
}

function hello() {
  link.send({ kind: 'hello', room, me: person.me(), name: person.name(), last: conversation.last });
}

function hear(frame) {
  switch (frame.kind) {
    case 'welcome': return welcome(frame);
    case 'message': return said([frame.message]);
    case 'people': return people.are(frame.people);
    case 'typing': return people.types(frame.id);
    case 'earlier': return earlier(frame);
    case 'known': return settled(frame.id);
    case 'unsayable': return settled(frame.id);
    case 'refused': return refused(frame);
  }
}

function lost(reason) {
  out();
  people.clearTyping();
  noticeTimer ??= setTimeout(() => setState('waiting', REASONS[reason] ?? 'Reconnecting…'), REASONS[reason] ? 0 : NOTICE_DELAY);
}

function out() {
  isIn = false;
  conversation?.sendAgain();
  clearTimeout(resend);
  resend = undefined;
}

function welcome(frame) {
  clearTimeout(noticeTimer);
  noticeTimer = undefined;
  link.settled();
  const isReturn = conversation.last !== undefined;
  isIn = true;
  you = messages.you = frame.you;
  if (frame.resumed) said(frame.messages);
  else beginWith(frame);
  at('empty').hidden = conversation.last !== undefined;
  setState('open', 'Connected');
  people.begin(you, frame.people, isReturn);
  named(person.name()); // it may have changed meanwhile
  flush();
}

function beginWith({ messages: list, more }) {
  conversation.forget();
  messages.silently(() => {
    messages.clear();
    messages.append(conversation.receive(list));
    messages.showOutbox(conversation.outbox);
  });
  at('earlier').hidden = !more;
  toEnd();
}

function said(list) {
  const follow = isAtEnd();
  const news = conversation.receive(list);
  if (news.length > 0) at('empty').hidden = true;
  messages.append(news);
  messages.showOutbox(conversation.outbox);
  for (const { from } of news) people.typedLast(from);
  const others = news.filter(({ from }) => from !== you).length;
  if (follow || others < news.length) toEnd();
  if (others > 0 && !isHere()) setUnread(unread + others);
  flush();
}

function compose(text) {
  conversation.compose(text);
  messages.showOutbox(conversation.outbox);
  toEnd();
  flush();
}

/** Sends nothing before the welcome: the server would not know the room. */
function flush() {
  const frame = isIn && !resend && conversation.next();
  if (frame && !link.send(frame)) conversation.sendAgain();
}

function settled(id) {
  conversation.settle(id);
  messages.showOutbox(conversation.outbox);
  flush();
}

function refused({ why, wait }) {
  conversation.sendAgain();
  setState('busy', why === 'too_fast' ? 'A little slower' : 'Trying again');
  clearTimeout(resend);
  resend = setTimeout(() => {
    resend = undefined;
    setState('open', 'Connected');
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

function named(name) {
  showSelf(name, you);
  if (isIn) link.send({ kind: 'name', name });
}

function setUnread(count) {
  unread = count;
  document.title = `${count > 0 ? `(${count}) ` : ''}#${room} · Fireside`;
  at('newer').hidden = count === 0;
  at('newer').textContent = count === 1 ? '1 new message' : `${count} new messages`;
}
