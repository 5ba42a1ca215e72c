// The islands of the render scenario, for the React in the same folder: a list of homes, as on a search page, and a
// button.
const { createElement: h } = require('react');

function Homes({ title, homes }) {
  return h('section', { className: 'homes' }, h('h2', null, title), h('ul', null, homes.map((home) => h(Home, { key: home.id, ...home }))));
}

function Home({ id, name, town, nightly, rating, reviews, tags, photo, isSaved }) {
  return h(
    'li',
    { className: isSaved ? 'home saved' : 'home', 'data-id': id },
    h('a', { href: `/rooms/${id}`, 'aria-label': name }, h('img', { src: photo, alt: `${name}, ${town}`, width: 320, height: 213, loading: 'lazy' })),
    h('h3', null, name),
    h('p', { className: 'where' }, 'In ', h('span', null, town)),
    h('ul', { className: 'tags' }, tags.map((tag) => h('li', { key: tag }, tag))),
    h('p', { className: 'price' }, h('strong', null, `€ ${nightly}`), ' a night'),
    h(Stars, { rating, reviews }),
    h('button', { type: 'button', 'aria-pressed': isSaved, onClick: () => {} }, isSaved ? 'Saved' : 'Save'),
  );
}

function Stars({ rating, reviews }) {
  return h('p', { className: 'stars', style: { opacity: reviews > 0 ? 1 : 0.5 } }, h('span', null, rating.toFixed(1)), ` (${reviews})`);
}

function Button({ label }) {
  return h('button', { type: 'button', className: 'button' }, label);
}

module.exports = { Homes, Button };
