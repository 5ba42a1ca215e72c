// The stays as the holiday site requests them, over HTTP.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { start } from './start.js';

const { base, process: server } = await start({ REVIEWS_TAKE: '0', CALENDAR_TAKES: '0' });
after(() => server.kill('SIGKILL'));

test('stays are searched by kind, price, guests and words, and come in the order asked for', async () => {
  const { body } = await json('/api/stays?kind=cabin&upto=150&guests=4&order=cheap');
  assert.ok(body.total > 0 && body.stays.length === Math.min(body.total, 24));
  assert.ok(body.stays.every((stay) => stay.kind === 'cabin' && stay.nightly <= 150 && stay.guests >= 4));
  const prices = body.stays.map(({ nightly }) => nightly);
  assert.deepEqual(prices, prices.toSorted((one, other) => one - other));
  const words = await json('/api/stays?q=norway%20LOFOTEN');
  assert.ok(words.body.total > 0 && words.body.stays.every(({ town }) => town === 'Reine'));
  assert.equal((await json('/api/stays?q=atlantis')).body.total, 0);
});

test('the numbers beside the filters are the counts of their results', async () => {
  const cabins = (await json('/api/stays?kind=cabin')).body;
  const lofts = (await json('/api/stays?kind=loft')).body;
  assert.equal(cabins.kinds.find(({ kind }) => kind === 'loft').count, lofts.total);
  assert.equal(cabins.prices.bars.reduce((sum, bar) => sum + bar), cabins.total);
});

test('pages of stays follow each other without a gap', async () => {
  const [whole, first, second] = await Promise.all(['limit=40', 'limit=20', 'limit=20&from=20'].map((query) => json(`/api/stays?${query}`)));
  assert.deepEqual([...first.body.stays, ...second.body.stays], whole.body.stays);
});

test('a stay is described, reviewed and has a calendar', async () => {
  const { body: stay } = await json('/api/stays/6');
  assert.equal(stay.town, 'Dingle');
  const { body } = await json('/api/stays/6/reviews');
  assert.equal(body.stars.reduce((sum, count) => sum + count, 0), stay.reviews);
  const { months } = (await json('/api/stays/6/calendar')).body;
  assert.equal(months.length, 3);
  assert.ok(months.every(({ month, free }) => /^\d{4}-\d\d$/.test(month) && free.every((day) => day >= 1 && day <= 31)));
});

test('an invalid request is a 400, a missing resource a 404', async () => {
  for (const query of ['kind=castle', 'kind=__proto__', 'order=constructor', 'upto=1e3', 'guests=-1', 'q=a&q=b', 'from=1&from=2']) {
    assert.equal((await json(`/api/stays?${query}`)).status, 400, query);
  }
  for (const path of ['0', '141', '6/', '6x', '__proto__', '141/reviews']) {
    assert.equal((await json(`/api/stays/${path}`)).status, path === '6/' ? 200 : 404, path);
  }
});

async function json(path) {
  const answer = await fetch(base + path);
  return { status: answer.status, body: await answer.json() };
}
