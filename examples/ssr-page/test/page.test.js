// The page: the same text for the same address, a known size, and no warnings of React.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { bundle } from '../build.mjs';

const require = createRequire(import.meta.url);
const page = await load('production');

test('the same address gives the same text', () => {
  assert.equal(page.render(at('/')).html, page.render(at('/')).html);
  assert.notEqual(page.render(at('/')).html, page.render(at('/?order=price')).html);
});

test('the default page has several hundred elements', () => {
  assert.ok(elements(page.render(at('/')).html) > 300);
});

test('the long page is ten times the short one', () => {
  const short = page.render(at('/')).html;
  const long = page.render(at('/?count=400')).html;
  assert.equal(cards(short), 40);
  assert.equal(cards(long), 400);
  const ratio = fastest(() => page.render(at('/?count=400'))) / fastest(() => page.render(at('/')));
  assert.ok(ratio > 5 && ratio < 20, `the long render took ${ratio.toFixed(1)} times as long`);
});

test('filters narrow the result, and invalid values in the query are ignored', () => {
  const cabins = page.render(at('/?kind=Cabin&with=sauna&upto=120&count=400')).html;
  assert.ok(cards(cabins) > 0 && cards(cabins) < 80, `${cards(cabins)} cards`);
  assert.equal(page.render(at('/?count=-3&kind=Castle&upto=x&with=__proto__&order=constructor')).status, 200);
  assert.match(page.render(at('/?guests=8&upto=40')).html, /No home fits/);
});

test('no invalid text of an address gets into a page', () => {
  const evil = '%3Cscript%3Ealert(1)%3C/script%3E';
  const queries = ['kind', 'order', 'with', 'guests', 'upto', 'count', 'other'].map((name) => `/?${name}=${evil}&${evil}=1`);
  for (const path of [...queries, `/homes/17?kind=${evil}`, `/homes/${evil}`, `/${evil}`]) {
    const { html } = page.render(at(path));
    assert.ok(html.includes('</html>') && !/alert\(1|<script/.test(html), path);
  }
});

test('each home has a page, and an unknown address is a 404', () => {
  assert.equal(page.render(at('/homes/17')).status, 200);
  assert.equal(page.render(at('/homes/0')).status, 404);
  assert.equal(page.render(at('/homes/17/x')).status, 404);
  assert.equal(page.render(at('/nope')).status, 404);
});

test('React reports no warning on any page', async (t) => {
  const strict = await load('development');
  const complaints = t.mock.method(console, 'error', () => {});
  for (const path of ['/', '/?kind=Loft&with=wifi&order=rating', '/?guests=8&upto=40', '/homes/3', '/nope']) strict.render(at(path));
  assert.deepEqual(complaints.mock.calls.map((call) => call.arguments.join(' ')), []);
});

async function load(mode) {
  const to = `dist/page.${mode}.cjs`;
  await bundle({ from: 'src/page.jsx', to, mode });
  return require(`../${to}`);
}

function at(path) {
  return new URL(path, 'http://localhost');
}

function elements(html) {
  return html.match(/<[a-z]/g).length;
}

function cards(html) {
  return html.split('<li class="card">').length - 1;
}

/** The run with the least CPU time in µs: other work on the machine can only slow a render down. */
function fastest(render) {
  let best = Infinity;
  for (let round = 0; round < 12; round += 1) {
    const begun = process.cpuUsage();
    render();
    const { user, system } = process.cpuUsage(begun);
    best = Math.min(best, user + system);
  }
  return best;
}
