// The column beside the conversation: the rooms, the own name, the link to share. Knows no connection.
import { element, face } from './messages.js';
import { at } from './page.js';
import * as person from './person.js';

/** `on`: { go(room), named(name) }. */
export function wireSide(on) {
  const isOpen = () => document.body.classList.contains('side-open');
  const open = (yes) => {
    document.body.classList.toggle('side-open', yes);
    at('menu').setAttribute('aria-expanded', String(yes));
    if (yes) at('rooms').querySelector('a')?.focus();
  };
  const go = (name) => {
    open(false);
    on.go(name);
    at('text').focus();
  };
  at('menu').addEventListener('click', () => open(!isOpen()));
  at('veil').addEventListener('click', () => open(false));
  document.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !isOpen()) return;
    open(false);
    at('menu').focus();
  });
  at('rooms').addEventListener('click', (event) => {
    const anchor = event.target.closest('a');
    if (!anchor || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(anchor.dataset.room);
  });
  at('new-room').addEventListener('submit', (event) => {
    event.preventDefault();
    const name = roomNameFrom(at('room-name').value);
    at('room-name').value = '';
    if (name) go(name);
  });
  at('self').addEventListener('click', async () => on.named(await askName()));
}

export function showRooms(current) {
  at('rooms').replaceChildren(
    ...person.rooms().map((name) => {
      const anchor = element('a', '', element('span', 'hash', '#'), name);
      anchor.href = `room/${name}`;
      anchor.dataset.room = name;
      if (name === current) anchor.setAttribute('aria-current', 'page');
      return element('li', '', anchor);
    }),
  );
}

/** `id`: the id under which the others see the person, once the server has sent it. */
export function showSelf(name, id) {
  at('self-name').textContent = name;
  at('self-face').replaceWith(Object.assign(face(id ?? '', name), { id: 'self-face' }));
}

export async function askName() {
  const dialog = at('who');
  at('who-name').value = person.name() ?? '';
  dialog.showModal();
  at('who-name').select();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  const name = at('who-name').value.replace(/\s+/g, ' ').trim() || person.name() || 'Somebody';
  person.setName(name);
  at('text').focus();
  return name;
}

export async function share(room) {
  const label = at('share').querySelector('span');
  const url = new URL(`room/${room}`, document.baseURI).href;
  try {
    await navigator.clipboard.writeText(url);
    label.textContent = 'Copied';
    setTimeout(() => (label.textContent = 'Copy link'), 2_000);
  } catch {
    prompt('The address of this room', url); // without TLS a page cannot write to the clipboard
  }
}

function roomNameFrom(text) {
  const plain = text.normalize('NFKD').replace(/\p{Mark}/gu, '').toLowerCase();
  return plain.replace(/[^a-z0-9]+/g, '-').replace(/^-+/, '').slice(0, 32).replace(/-+$/, '');
}
