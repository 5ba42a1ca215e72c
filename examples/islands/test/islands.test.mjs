// The page of islands behind Hostler and in Chromium: with its renderer, with a broken island, and without a renderer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, openBrowser, startHostler } from '@hostler/testkit';

const NAMES = ['Search', 'Viewers', 'Stays', 'PriceCalendar.js', 'Reviews'];
const file = fileURLToPath(new URL('../hostler.toml', import.meta.url));

let chromium;
let site;
before(async () => {
  chromium = await openBrowser();
  site = await start();
});
after(async () => {
  await chromium?.close();
  await site?.stop();
});

async function start({ options = {}, env = {} } = {}) {
  const address = `127.0.0.1:${await freePort()}`;
  return startHostler({ file, listen: address, options, env: { HYPERNOVA_URL: `http://${address}/batch`, ...env } });
}

async function open(url) {
  const page = await chromium.newPage();
  page.complaints = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.complaints.push(message.text()));
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  await page.goto(url, { waitUntil: 'load' });
  return page;
}

/** The response in which exactly these islands are left to the browser. On a slow machine, more of them are at first. */
function answer(url, left) {
  return eventually(`an answer that leaves ${left.join() || 'nothing'} to the browser`, async () => {
    const html = await (await fetch(url)).text();
    const empty = [...html.matchAll(/data-hypernova-key="([^"]+)" data-hypernova-id="[^"]*"><\/div>/g)].map(([, key]) => key.replace('.', ''));
    return empty.join() === left.map((name) => name.replace('.', '')).join() && html;
  });
}

/** Uses every island like a visitor, to show that all of them work. */
async function assertAlive(page) {
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Go on' }).waitFor();

  await page.getByRole('button', { name: 'One guest more' }).click();
  await page.getByText('3 guests').waitFor();
  await page.getByLabel('Where').selectOption('Nusfjord');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('heading', { name: 'Homes in Nusfjord' }).waitFor();
  assert.equal(await page.locator('.card').count(), 2);
  await page.getByRole('button', { name: 'Keep Harbour light' }).click();
  assert.equal(await page.getByRole('button', { name: 'Keep Harbour light' }).getAttribute('aria-pressed'), 'true');

  await page.locator('.month button:enabled').nth(0).click();
  await page.locator('.month button:enabled').nth(2).click();
  await page.getByText(/^2 nights: €\d+$/).waitFor();

  await page.getByRole('button', { name: '3 stars' }).click();
  await page.getByText('the wind has opinions').waitFor();
  assert.equal(await page.locator('.reviews li').count(), 1);
}

test('the whole content is there without JavaScript, and says who rendered it', async () => {
  const html = await answer(`${site.url}/`, []);
  for (const text of ['Anywhere by the sea', 'people are looking', 'Rust-red boathouse', 'Harbour light', 'Choose the day you arrive', 'otters below the window']) {
    assert.ok(html.includes(text), text);
  }
  for (const name of NAMES) assert.match(html, new RegExp(`<b>${name}</b> worker \\d+, \\d+\\.\\d&nbsp;ms`));
});

test('every island hydrates without a warning, and no two share an id', async () => {
  await answer(`${site.url}/`, []);
  const page = await open(`${site.url}/`);
  const ids = await page.locator('[id]').evaluateAll((elements) => elements.map(({ id }) => id));
  assert.equal(new Set(ids).size, ids.length);
  await assertAlive(page);
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test('an island that throws does not affect the others, and the browser renders it', async () => {
  const html = await answer(`${site.url}/?broken=1`, ['Reviews']);
  assert.match(html, /<b>Reviews<\/b> your browser: the reviews were told to break/);
  const page = await open(`${site.url}/?broken=1`);
  await assertAlive(page);
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test('the page lives below a path, and nowhere else', async (t) => {
  const below = await start({ env: { BASE_PATH: '/islands' } });
  t.after(() => below.stop());
  assert.equal((await fetch(`${below.url}/`)).status, 404);
  const page = await open(`${below.url}/islands/`);
  await assertAlive(page);
  assert.deepEqual(page.complaints, []);
  await page.close();
});

for (const [what, app] of [['never answers', 'silent'], ['dies of every batch', 'dying']]) {
  test(`with a renderer that ${what} the page is complete`, async (t) => {
    const without = await start({ options: { 'pools.islands.command': `node test/apps/${app}.js` } });
    t.after(() => without.stop());
    await answer(`${without.url}/`, NAMES);
    const page = await open(`${without.url}/`);
    await assertAlive(page);
    assert.equal(await page.locator('footer .browser').count(), NAMES.length);
    assert.deepEqual(page.complaints, []);
    await page.close();
  });
}

test('results without their fields are a 500 of the page, and do not end its process', async (t) => {
  const odd = await start({ options: { 'pools.islands.command': 'node test/apps/bare.js' } });
  t.after(() => odd.stop());
  // Of a process that ends, Hostler's 502 would come.
  await eventually('the 500 of the page', async () => {
    const answer = await fetch(`${odd.url}/`);
    return answer.status === 500 && (await answer.text()) === 'Something went wrong.\n';
  });
});

test('the renderer is for clients on this machine, and not for visitors', async (t) => {
  const known = await start({ options: { 'server.trusted_proxies': '127.0.0.1' } });
  t.after(() => known.stop());
  const batch = (headers) => fetch(`${known.url}/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ one: { name: 'Nobody', data: {} } }),
  });
  assert.equal((await batch({})).status, 200);
  const visitor = await batch({ 'x-forwarded-for': '203.0.113.9' });
  assert.deepEqual([visitor.status, await visitor.text()], [404, 'There is no such page.\n']);
});

test('without a renderer at its address the page is complete', async (t) => {
  const alone = await start({ env: { HYPERNOVA_URL: `http://127.0.0.1:${await freePort()}/batch` } });
  t.after(() => alone.stop());
  const page = await open(`${alone.url}/`);
  await assertAlive(page);
  assert.deepEqual(page.complaints, []);
  await page.close();
});
