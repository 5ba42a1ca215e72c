// A crawler from many addresses asks for all that the workers can render, and a person opens the page in Chromium beside it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually, hostlerProgram, openBrowser, startHostler } from '@hostler/testkit';

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
  // `document.fonts.ready` may come before the browser has begun to load the font.
  await eventually('the font', () => page.evaluate("document.fonts.check('16px Figtree') && document.fonts.size > 0"));
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
  const environment = { ...process.env, HOSTLER_SERVER_ADMIN: new URL(site.admin).host };
  const { stdout: table } = await promisify(execFile)(hostlerProgram(), ['status'], { cwd: tmpdir(), env: environment });
  assert.match(table, /worker CPU of the last minute by key: crawler meta-externalagent \d+(\.\d)? % \(\d+m?s/);

  const line = await site.logged('/?guests=3&order=rating');
  assert.equal(line.fair_key, 'client 203.0.113.0/24');
  const crawled = answered(site).find(({ user_agent: agent }) => agent === CRAWLER);
  assert.equal(crawled.fair_key, 'crawler meta-externalagent');
  assert.ok(crawled.worker_cpu_ms > 0);
  assert.ok(line.queue_length >= LIMIT / 2, `${line.queue_length} requests waited when the person came`);
  await eventually('the requests of the crawler that came before', () => overtaken(site, line) >= line.queue_length / 2);
});

test('in order of arrival, a person overtakes nobody', async (t) => {
  const site = await start(t, {});
  const visits = Array.from({ length: 10 }, (_, number) => `/?guests=4&visit=${number}`);
  const served = [];
  for (const path of visits) {
    const status = await get(site.url + path, { headers: { 'x-forwarded-for': '203.0.113.9' } });
    if (status === 200) served.push(path);
    else assert.equal(status, 503, 'the queue is full');
  }
  await site.calm();
  for (const path of served) {
    const line = await site.logged(path);
    assert.ok(overtaken(site, line) < LIMIT / 4, `${overtaken(site, line)} of ${line.queue_length}`);
  }
});

/** The example, with two workers and a full queue. The queue refuses a request only while it is full, also on a slow machine. */
async function start(t, options) {
  const site = await startHostler({
    file: FILE,
    options: {
      'server.trusted_proxies': '127.0.0.1',
      'pools.page.queue.limit': LIMIT,
      'pools.page.queue.timeout': '30s',
      'pools.page.queue.policy': 'fifo',
      ...options,
    },
  });
  site.calm = storm(site.url);
  t.after(async () => {
    await site.calm();
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
      const status = await get(`${url}/?count=60&visit=${number}-${visit}`, { agent, headers });
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

/** How many requests had come before this one, and got a worker after it. */
function overtaken(site, line) {
  const [came, began] = moments(line);
  return answered(site).map(moments).filter((other) => other[0] < came && other[1] > began).length;
}

/** When a request came, and when it got a worker. */
function moments({ time, total_ms: total, queue_wait_ms: wait }) {
  const came = Date.parse(time) - total;
  return [came, came + wait];
}
