// From an address to a search and back, and from an address to its data. Without a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routeOf, statusOf } from '../src/app/route.js';
import { apiPath, formatSearch, parseSearch } from '../src/app/search.js';

const parse = (text) => parseSearch(new URLSearchParams(text));

test('a search keeps valid filters, and only these are in the URL', () => {
  const text = '?q=by+the+sea&kind=loft&upto=120&guests=4&order=cheap&page=2';
  assert.equal(formatSearch(parse(text), { page: 2 }), text);
  assert.equal(formatSearch(parse(text)), text.replace('&page=2', ''), 'any change begins at the first page');
  assert.equal(formatSearch(parse('q=&kind=&upto=0&guests=1&order=best&page=1')), '');
  for (const nonsense of ['kind=castle', 'kind=__proto__', 'order=constructor', 'upto=-1', 'upto=1e3', 'guests=99', 'page=0', 'page=x', 'other=1']) {
    assert.equal(formatSearch(parse(nonsense)), '', nonsense);
  }
  assert.equal(parse(`q=${'x'.repeat(500)}`).q.length, 80);
});

test('the API gets a request for one page of results', () => {
  assert.equal(apiPath(parse('')), '/stays?limit=20');
  assert.equal(apiPath(parse('q=a%26b&page=3')), '/stays?q=a%26b&from=40&limit=20');
});

test('an address below the base path is a page, any other is none', () => {
  for (const [at, name] of [['/stays', 'list'], ['/stays/', 'list'], ['/stays/?q=x', 'list'], ['/stays/6', 'stay'], ['/stays/6/', 'missing']]) {
    assert.equal(routeOf(at, '/stays').name, name, at);
  }
  for (const at of ['/', '/6', '/staysx', '/stays6', '//stays/6', '/stays/06', '/stays/1234567890']) assert.equal(routeOf(at, '/stays').name, 'missing', at);
  assert.deepEqual([routeOf('/6?photo=9&nights=0', ''), routeOf('/6?photo=2', '').photo].map((each) => each.photo ?? each), [routeOf('/6', ''), 2]);
});

test('the status depends on the required data of the page', () => {
  const stay = routeOf('/6', '');
  const statuses = [{ ok: true }, { ok: false, status: 404 }, { ok: false, status: 500 }, { ok: false, status: 503 }].map((answer) => statusOf(stay, answer));
  assert.deepEqual(statuses, [200, 404, 503, 503]);
  assert.equal(statusOf(routeOf('/x', '')), 404);
});
