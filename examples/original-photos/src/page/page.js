// In the browser: shows a photo's sizes below the form. Text from a response is always inserted as text.
/* global document, HTMLAnchorElement */
const form = document.querySelector('form');
const field = document.querySelector('#id');
const result = document.querySelector('#result');

form.addEventListener('submit', (event) => {
  event.preventDefault();
  look(field.value.trim());
});

document.querySelector('.samples')?.addEventListener('click', (event) => {
  if (!(event.target instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  field.value = event.target.textContent;
  look(field.value);
});

async function look(id) {
  const button = form.querySelector('button');
  button.disabled = true;
  const began = performance.now();
  try {
    const answer = await fetch(`/view/${encodeURIComponent(id)}.json`, { cache: 'no-cache' });
    const body = await answer.json();
    const took = `${answer.status} in ${Math.round(performance.now() - began)} ms, ${answer.headers.get('lookup-status') ?? 'not looked up'}`;
    show(answer.ok ? photo(body, took) : [refused(answer, body), make('p', { className: 'source', textContent: took })]);
  } catch (error) {
    show([make('p', { className: 'error', textContent: `No answer: ${error.message}` })]);
  } finally {
    button.disabled = false;
  }
}

function photo({ id, picture, sizes }, took) {
  const preview = sizes.filter(({ media, width }) => media === 'photo' && width <= 1024).at(-1);
  const figure = make('figure', {}, [
    ...(preview ? [make('img', { src: preview.source, width: preview.width, height: preview.height, alt: `Photo ${id}` })] : []),
    make('figcaption', { textContent: took }),
  ]);
  const rows = sizes.map((size) => make('tr', { className: picture && size.source === picture.source ? 'best' : '' }, [
    make('td', { textContent: size.label }),
    make('td', { textContent: size.width ? `${size.width} × ${size.height}` : '' }),
    make('td', {}, [make('a', { href: size.source, textContent: size.media === 'video' ? 'video' : 'picture' })]),
  ]));
  const head = make('tr', {}, ['Size', 'Pixels', ''].map((textContent) => make('th', { textContent })));
  const leads = picture ? make('p', {}, [make('a', { href: `/view/${id}`, textContent: `/view/${id}` }), ` leads to ${picture.label}.`]) : make('p', { textContent: 'No picture of it.' });
  return [figure, leads, make('table', {}, [make('thead', {}, [head]), make('tbody', {}, rows)])];
}

function refused(answer, { message }) {
  const wait = answer.headers.get('retry-after');
  return make('p', { className: 'error' }, [make('strong', { textContent: answer.status }), ` ${message}${wait ? ` Try again in ${wait} s.` : ''}`]);
}

function make(name, properties, children = []) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function show(children) {
  result.replaceChildren(...children);
  result.hidden = false;
}
