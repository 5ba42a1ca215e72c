// A crawler from many addresses asks for all that the workers can render, and a person opens the page in Chromium beside it.
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually, openBrowser, startHostler } from '@hostler/testkit';

const FILE = fileURLToPath(new URL('../hostler.toml', import.meta.url));
/** Its name has no part that says so. */
const CRAWLER = 'meta-externalagent/1.1';
const ADDRESSES = 60;
const LIMIT = 30;
/** A refused crawler asks again after so many milliseconds. */
const AGAIN = 50;

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

test('the page loads beside a crawler that keeps the queue full, and status and log name the crawler and its cost', async (t) => {
  const site = await start(t, { 'pools.page.queue.fair': '["crawler", "client"]' });
  const page = await person(t);
  await page.goto(`${site.url}/?guests=3&order=rating`);
  await page.evaluate('document.fonts.ready');
  assert.equal(await page.evaluate("document.fonts.check('16px Figtree') && document.fonts.size > 0"), true, 'the font has come');
  await page.locator('a[href^="/homes/"]').first().click();
  await page.waitForURL('**/homes/*');
  await page.locator('h1').waitFor();

  const paths = page.answers.map(({ url }) => new URL(url).pathname);
  assert.ok(paths.includes('/') && paths.includes('/figtree.woff2') && paths.some((path) => path.startsWith('/homes/')), paths.join(' '));
  assert.deepEqual(page.answers.filter(({ status }) => status !== 200), []);
  assert.deepEqual(page.complaints, []);

  const { pools: [pool] } = await site.status();
  const [dearest] = pool.fair.keys;
  assert.equal(dearest.key, 'crawler meta-externalagent');
  assert.ok(dearest.share_percent > 50 && dearest.worker_ms['1m'] > 0 && dearest.refused > 0, JSON.stringify(dearest));
  const row = pool.ledger.keys.find(({ name }) => name === dearest.key);
  assert.ok(row.share_percent > 50 && row.cpu_ms['1m'] > 0, JSON.stringify(row));
  assert.ok(pool.fair.keys.some(({ key }) => key === 'client 203.0.113.0/24'), JSON.stringify(pool.fair.keys));
  const table = await (await fetch(`${site.admin}/table`)).text();
  assert.match(table, /worker CPU of the last minute by key: crawler meta-externalagent \d+(\.\d)? % \(\d+m?s/);

  const line = await site.logged('/?guests=3&order=rating');
  assert.equal(line.fair_key, 'client 203.0.113.0/24');
  const crawled = answered(site).find(({ user_agent: agent }) => agent === CRAWLER);
  assert.equal(crawled.fair_key, 'crawler meta-externalagent');
  assert.ok(crawled.worker_cpu_ms > 0);
  assert.ok(line.queue_length >= LIMIT / 2, `${line.queue_length} requests waited when the person came`);
  assert.ok(overtook(site, line) < line.queue_length / 2, `${overtook(site, line)} of ${line.queue_length} were served before`);
});

test('in order of arrival, a person waits behind the crawler or is refused', async (t) => {
  const site = await start(t, {});
  for (let number = 0; number < 10; number += 1) {
    const path = `/?guests=4&visit=${number}`;
    const answer = await fetch(site.url + path, { headers: { 'x-forwarded-for': '203.0.113.9' } });
    await answer.arrayBuffer();
    if (answer.status === 503) continue;
    const line = await site.logged(path);
    assert.ok(overtook(site, line) >= line.queue_length / 2, `${overtook(site, line)} of ${line.queue_length} were served before`);
  }
});

/** The example, with two workers and a full queue. The queue refuses nothing before it is full. */
async function start(t, options) {
  const site = await startHostler({
    file: FILE,
    options: { 'server.trusted_proxies': '127.0.0.1', 'pools.page.queue.limit': LIMIT, 'pools.page.queue.policy': 'fifo', ...options },
  });
  const stop = storm(site.url);
  t.after(async () => {
    await stop();
    await site.stop();
  });
  await eventually('a full queue', async () => (await site.status()).pools[0].counters.refused_full > 0);
  return site;
}

/** Sends requests of the crawler from all its addresses, each over a connection of its own, until the returned function is called. */
function storm(url) {
  let isOver = false;
  const agents = Array.from({ length: ADDRESSES }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const crawl = async (agent, number) => {
    for (let visit = 0; !isOver; visit += 1) {
      const headers = { 'user-agent': CRAWLER, 'x-forwarded-for': `198.51.${number}.7` };
      const status = await get(`${url}/?count=120&visit=${number}-${visit}`, { agent, headers });
      if (status === 503) await pause(AGAIN);
    }
  };
  const all = agents.map(crawl);
  return async () => {
    isOver = true;
    await Promise.all(all);
    agents.forEach((agent) => agent.destroy());
  };
}

/** The status of an answer, when all of it has come. */
function get(url, options) {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode)).on('error', reject);
    });
    sent.on('error', reject).end();
  });
}

/** An empty tab of a person from another network, with all answers and complaints of its pages. */
async function person(t) {
  const context = await browser.newContext({ extraHTTPHeaders: { 'x-forwarded-for': '203.0.113.9' } });
  t.after(() => context.close());
  const page = Object.assign(await context.newPage(), { answers: [], complaints: [] });
  page.on('response', (response) => {
    if (!response.url().startsWith('data:')) page.answers.push({ url: response.url(), status: response.status() });
  });
  page.on('requestfailed', (failed) => page.complaints.push(`${failed.url()}: ${failed.failure()?.errorText}`));
  page.on('console', (message) => page.complaints.push(message.text()));
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  return page;
}

/** The access lines of requests that a worker has answered. */
function answered(site) {
  return site.log.filter((line) => line.includes('"event":"access"') && line.includes('"status":200')).map((line) => JSON.parse(line));
}

/** How many requests the workers finished while this one waited in the queue. In order of arrival it is about as many as waited when it came. */
function overtook(site, { time, total_ms: total, queue_wait_ms: wait, id }) {
  const came = Date.parse(time) - total;
  const ended = (line) => Date.parse(line.time);
  return answered(site).filter((line) => line.id !== id && ended(line) > came && ended(line) <= came + wait).length;
}
