// The page behind Hostler: with its hostler.toml, and without a free slot.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, openBrowser, startHostler } from '@hostler/testkit';
import { startApi } from './support/api.mjs';
import { openPage } from './support/browser.mjs';
import { reader } from './support/reader.mjs';

const here = fileURLToPath(new URL('..', import.meta.url));
const browser = await openBrowser();
after(() => browser.close());

test('page and API work behind one address, as configured in hostler.toml', async (t) => {
  const port = await freePort();
  const options = { 'pools.stays.env.API_URL': `http://127.0.0.1:${port}/api`, 'pools.stays.env.API_TIMEOUT': '600000' };
  const site = await startHostler({ file: `${here}hostler.toml`, listen: `127.0.0.1:${port}`, options });
  t.after(() => site.stop());
  const { tab, complaints } = await openPage(t, browser);
  const answer = await tab.goto(`${site.url}/6`);
  assert.equal(answer.status(), 200);
  await tab.locator('.verdict').waitFor();
  await tab.getByRole('link', { name: 'All stays' }).click();
  await tab.locator('.card').first().waitFor();
  assert.match(await tab.locator('.how').innerText(), /Rendered on the server/);
  assert.deepEqual(complaints, []);
});

test('a page streams through Hostler as it is rendered', async (t) => {
  const { api, site } = await busySite(t);
  const reviews = api.hold('/stays/6/reviews');
  const text = reader(await fetch(`${site.url}/stays/6`));
  assert.ok(!(await text.until('</footer>')).includes('class="verdict"'));
  reviews.release();
  assert.match(await text.rest(), /class="verdict".*<\/html>$/s);
});

test('with every slot taken Hostler sends the shell, and the browser makes the page from the API', async (t) => {
  const { api, site } = await busySite(t);
  const reviews = api.hold('/stays/6/reviews');
  const first = fetch(`${site.url}/stays/6`);
  await reviews.arrived; // the only slot is in use until the reviews come

  const { tab, complaints } = await openPage(t, browser);
  const answer = await tab.goto(`${site.url}/stays/?kind=loft`);
  assert.equal(answer.status(), 200);
  assert.equal(await answer.headerValue('hostler-fallback'), 'queue_full');
  await tab.locator('#count').getByText('28 stays').waitFor();
  assert.match(await tab.locator('.how').innerText(), /Rendered in your browser/);
  assert.equal(await tab.evaluate("getComputedStyle(document.querySelector('.card-picture')).borderRadius"), '20px', 'its styles came with it');

  await tab.getByLabel('Where or what').fill('bled');
  await tab.waitForURL('**/stays/?q=bled&kind=loft');
  await tab.locator('.card a').first().click();
  await tab.waitForURL(/\/stays\/\d+$/);
  await tab.locator('.verdict').waitFor();

  assert.deepEqual(complaints, [], 'it needs nothing from the pool: not a font, not an icon');

  reviews.release();
  assert.match(await (await first).text(), /class="verdict"/, 'and the request with the slot got its page');
  await eventually('the slot to be free again', async () => {
    await tab.reload();
    return (await tab.locator('.how').innerText()).startsWith('Rendered on the server');
  });
});

test('the shell also shows unknown URLs and failures', async (t) => {
  const { api, site } = await busySite(t);
  const reviews = api.hold('/stays/6/reviews');
  const first = fetch(`${site.url}/stays/6`);
  await reviews.arrived;
  api.alter('/stays/7', { body: { id: 7 } });

  const { tab } = await openPage(t, browser);
  await tab.goto(`${site.url}/stays/999`);
  await tab.getByRole('heading', { name: 'Nothing here' }).waitFor();
  await tab.goto(`${site.url}/stays/7`);
  await tab.getByRole('heading', { name: 'This page broke' }).waitFor();
  const plain = await openPage(t, browser, { javaScriptEnabled: false });
  await plain.tab.goto(`${site.url}/stays/`);
  await plain.tab.getByRole('heading', { name: 'One moment, please' }).waitFor();
  reviews.release();
  await (await first).text();
});

/** One worker with one slot and no queue, and the API under the test's control. */
async function busySite(t) {
  const api = await startApi(t);
  const config = `
    [pools.stays]
    command = "node dist/server.mjs"
    cwd = "${here}"
    workers = 1
    concurrency = 1
    hang_timeout = "10m"
    env = { NODE_ENV = "production", BASE_PATH = "/stays", API_URL = "${api.url}", API_TIMEOUT = "600000", RENDER_TIMEOUT = "600000" }
    [pools.stays.queue]
    limit = 0
    [pools.api]
    members = ["${api.origin.replace('http://', '')}"]
    [[routes]]
    match = "/stays/*"
    pool = "stays"
    fallback = "${here}dist/shell.stays.html"
    [[routes]]
    match = "/api/*"
    pool = "api"
  `;
  const site = await startHostler({ config });
  t.after(() => site.stop());
  await eventually('the page to answer', async () => (await fetch(`${site.url}/stays/healthz`)).status === 200);
  return { api, site };
}
