// Elements of the page: making them, and tables that keep their cells, so that the focus stays where it is. Knows no figures.

export const at = (id) => document.getElementById(id);

/** An element. Text goes in as text, never as HTML: names come from clients and apps. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name === 'onclick') made.addEventListener('click', value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A link to a page of the documentation, which Hostler serves too. It opens beside the live page. */
export function pageLink(page, text) {
  return element('a', { href: `/docs/${page}`, target: '_blank' }, text);
}

/** Sets the text only if it has changed. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Shows rows as a table. A cell is a text, or `{ text, kind, act }`: `kind` is a class, and `act` makes the text a button.
 * A column is `[name, class]`.
 */
export function table(place, columns, rows, empty) {
  if (rows.length === 0) {
    if (place.firstChild?.className !== 'empty') place.replaceChildren(element('p', { class: 'empty' }, empty));
    return;
  }
  let body = place.querySelector('tbody');
  if (!body) {
    const head = columns.map(([name, kind]) => element('th', { class: kind, scope: 'col' }, name));
    body = element('tbody');
    const scroll = element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-labelledby': place.closest('section')?.getAttribute('aria-labelledby') });
    scroll.append(element('table', {}, element('thead', {}, element('tr', {}, ...head)), body));
    place.replaceChildren(scroll);
  }
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, index) => {
    const line = body.rows[index] ?? body.insertRow();
    columns.forEach(([, kind], column) => fill(line.cells[column] ?? line.insertCell(), row[column], kind));
  });
}

function fill(cell, content, columnKind) {
  const { text, kind, act } = content !== null && typeof content === 'object' ? content : { text: content };
  const name = [columnKind, kind].filter(Boolean).join(' ');
  if (cell.className !== name) cell.className = name;
  if (!act) return say(cell, String(text ?? '–'));
  let button = cell.querySelector('button');
  if (!button) {
    button = element('button', { type: 'button', class: 'words', onclick: () => button.act() });
    cell.replaceChildren(button);
  }
  button.act = act;
  say(button, String(text));
}
