// The page in Chromium: with scripts, without them, and with missing parts. React's development build reports mistakes.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { eventually, openBrowser } from '@hostler/testkit';
import { buildAll } from '../build.mjs';
import { startApi } from './support/api.mjs';
import { openPage } from './support/browser.mjs';
import { startPage } from './support/process.mjs';

const browser = await openBrowser();
after(() => browser.close());

test('without JavaScript the page is complete, and its form and links work', async (t) => {
  const { page } = await site(t);
  const { tab } = await openPage(t, browser, { javaScriptEnabled: false });
  await tab.goto(page.url);
  assert.equal(await tab.locator('.card:visible').count(), 20);
  await tab.getByLabel('Where or what').fill('lofoten');
  await tab.getByLabel('Who').selectOption('4');
  await tab.getByRole('button', { name: 'Search' }).click();
  await tab.waitForURL(/q=lofoten&guests=4/); // until all of it is there
  const cards = await tab.locator('.card').allInnerTexts();
  assert.ok(cards.length > 0 && cards.every((text) => text.includes('Reine, Norway')), cards.join('; '));
  await tab.getByRole('link', { name: /^Lofts/ }).click();
  assert.match(tab.url(), /q=lofoten&kind=loft&guests=4/);
  await tab.locator('.card a').first().click();
  // The late part is at the end of the document, where no script has moved it, and it is visible.
  await tab.locator('.verdict:visible').waitFor();
  assert.equal(await tab.locator('.waiting:visible').count(), 0);
  await tab.locator('.gallery a').nth(1).click();
  assert.match(await tab.locator('dialog[open]').innerText(), /The sitting room/);
});

test('React reports no warning on any page, after hydration or navigation', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'hyperloop-'));
  t.after(() => rm(folder, { recursive: true }));
  await buildAll({ to: folder, mode: 'development' });
  const api = await startApi(t);
  const page = await startPage(t, { api, file: join(folder, 'server.mjs') });
  const { tab, complaints } = await openPage(t, browser);
  for (const path of ['/', '/?kind=loft&q=bled&upto=100', '/?q=nowhere', '/?page=2', '/6', '/6?photo=2', '/6?nights=7']) {
    await tab.goto(page.url + path, { waitUntil: 'networkidle' });
    await hydrated(tab);
  }
  await tab.goto(page.url);
  await tab.locator('.card a').first().click();
  await tab.locator('.verdict').waitFor();
  await tab.goBack();
  await tab.locator('.card').first().waitFor();
  assert.deepEqual(complaints, []);
  assert.deepEqual(page.log, []);
});

test('filters apply at each change, are in the URL, and the back button undoes them', async (t) => {
  const { page } = await site(t);
  const { tab, complaints } = await openPage(t, browser);
  await tab.goto(page.url);
  await hydrated(tab);
  await tab.evaluate('window.same = true');
  const count = tab.locator('#count');

  await tab.getByLabel('Where or what').pressSequentially('skye');
  await tab.waitForURL('**/?q=skye');
  await count.getByText('20 stays').waitFor();
  await tab.getByLabel('Who').selectOption('4');
  await tab.waitForURL('**/?q=skye&guests=4');
  await tab.getByRole('link', { name: /^Cabins/ }).click();
  await tab.waitForURL('**/?q=skye&kind=cabin&guests=4');
  await tab.locator('.card a').first().click();
  await tab.getByRole('heading', { level: 1 }).getByText('Cabin').waitFor();
  await tab.goBack();
  await tab.goBack();
  await tab.goBack();
  await tab.waitForURL('**/?q=skye');
  await count.getByText('20 stays').waitFor();
  assert.equal(await tab.getByLabel('Who').inputValue(), '1');
  await tab.goBack(); // one entry for a word, not one for each letter
  await count.getByText('140 stays').waitFor();
  assert.equal(await tab.getByLabel('Where or what').inputValue(), '');
  assert.equal(await tab.evaluate('window.same'), true, 'the document was never left');
  assert.deepEqual(complaints, []);
});

test('a choice made while another loads does not lose the other', async (t) => {
  const { api, page } = await site(t);
  const slow = api.hold('/stays?guests=4&limit=20');
  const { tab, complaints } = await openPage(t, browser);
  await tab.goto(page.url);
  await hydrated(tab);
  await tab.getByLabel('Who').selectOption('4');
  await slow.arrived;
  await tab.getByRole('link', { name: /^Cabins/ }).click();
  await tab.waitForURL('**/?kind=cabin&guests=4');
  await tab.getByRole('link', { name: 'Remove: Cabins' }).waitFor();
  await tab.locator('#count').getByText('140 stays').waitFor({ state: 'detached' });
  slow.release();
  assert.deepEqual(complaints, []);
});

test('text typed before the script loads is not lost', async (t) => {
  const { page } = await site(t);
  const { tab, complaints } = await openPage(t, browser);
  let arrive;
  const typed = new Promise((resolve) => (arrive = resolve));
  await tab.route('**/assets/app-*.js', async (route) => {
    await typed;
    await route.continue();
  });
  await tab.goto(page.url, { waitUntil: 'commit' });
  await tab.getByLabel('Where or what').fill('gotland');
  arrive();
  await tab.waitForURL('**/?q=gotland');
  await tab.locator('#count').getByText('20 stays').waitFor();
  assert.equal(await tab.getByLabel('Where or what').inputValue(), 'gotland');
  assert.deepEqual(complaints, []);
});

test('typed text is shown as text', async (t) => {
  const { page } = await site(t);
  const { tab, complaints } = await openPage(t, browser);
  const evil = '<img src=x onerror=alert(1)>"\'</script><script>alert(2)</script>';
  tab.on('dialog', (dialog) => complaints.push(dialog.message()));
  await tab.goto(`${page.url}/?q=${encodeURIComponent(evil)}`);
  await hydrated(tab);
  assert.equal(await tab.locator('.chips').innerText(), `“${evil}”`);
  assert.equal(await tab.getByLabel('Where or what').inputValue(), evil);
  assert.match(await tab.title(), /<img src=x/);
  assert.deepEqual(complaints, []);
});

test('the calendar appears while the reviews load, and both are interactive', async (t) => {
  const { api, page } = await site(t);
  const reviews = api.hold('/stays/6/reviews');
  const { tab, complaints } = await openPage(t, browser);
  await tab.goto(`${page.url}/6`, { waitUntil: 'commit' });
  await tab.locator('.month').first().waitFor();
  assert.equal(await tab.locator('#reviews.waiting').count(), 1);
  await hydrated(tab);
  await tab.getByLabel('Nights').selectOption('7');
  await tab.getByText('× 7 nights').waitFor(); // the part that has arrived works
  reviews.release();
  await tab.locator('.verdict').waitFor();
  assert.equal(await tab.locator('.waiting').count(), 0);
  assert.deepEqual(api.asked.filter((path) => path.endsWith('reviews')), ['/stays/6/reviews'], 'the browser did not ask again');
  assert.deepEqual(complaints, []);
});

test('the browser fetches the parts for which the server did not wait', async (t) => {
  // Long enough for a busy machine to render the shell.
  const { api, page } = await site(t, { RENDER_TIMEOUT: '3000' });
  const reviews = api.hold('/stays/6/reviews');
  const { tab, complaints } = await openPage(t, browser);
  await tab.goto(`${page.url}/6`); // until the document has ended
  reviews.release();
  await tab.locator('.verdict').waitFor();
  assert.deepEqual(complaints, []);
});

test('a part that also fails in the browser shows an error, and the rest stays', async (t) => {
  const { api, page } = await site(t);
  api.alter('/stays/6/reviews', { body: { count: 3 } });
  const { tab } = await openPage(t, browser);
  await tab.goto(`${page.url}/6`);
  await tab.getByText('The reviews cannot be shown').waitFor();
  assert.equal(await tab.locator('.month').count(), 3);
});

test('a page that fails shows an error, with links to other pages', async (t) => {
  const { api, page } = await site(t);
  api.alter('/stays/6', { body: { id: 6, name: 'Broken' } });
  const { tab } = await openPage(t, browser);
  assert.equal((await tab.goto(`${page.url}/6`)).status(), 500);
  await tab.getByRole('heading', { name: 'This page broke' }).waitFor();
  await tab.getByRole('link', { name: 'All stays' }).click();
  await tab.locator('.card').first().waitFor();
});

test('a retry on the same page finds an API that is available again', async (t) => {
  const { api, page } = await site(t);
  await api.close();
  const { tab } = await openPage(t, browser);
  assert.equal((await tab.goto(page.url)).status(), 503);
  await hydrated(tab);
  await tab.evaluate('window.same = true');
  await api.open();
  await tab.getByRole('link', { name: 'Try again' }).click();
  await tab.locator('.card').first().waitFor();
  assert.equal(await tab.evaluate('window.same'), true);
});

test('pictures open large by mouse and by keys, and closing returns to the same place', async (t) => {
  const { page } = await site(t);
  const { tab, complaints } = await openPage(t, browser);
  await tab.goto(`${page.url}/6`);
  await hydrated(tab);
  await tab.locator('.gallery a').first().click();
  const dialog = tab.getByRole('dialog');
  await dialog.getByText('1 of 5').waitFor();
  await tab.keyboard.press('ArrowLeft');
  await dialog.getByText('5 of 5').waitFor();
  await dialog.getByLabel('Next picture').click();
  await dialog.getByText('1 of 5').waitFor();
  await tab.keyboard.press('Escape');
  await tab.waitForURL(`${page.url}/6`);
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual(complaints, []);
});

test('a link to a part of the page leads there, and the page does not jump back', async (t) => {
  const { page } = await site(t);
  const { tab, complaints } = await openPage(t, browser, { viewport: { width: 1280, height: 600 } });
  await tab.goto(`${page.url}/6`);
  await hydrated(tab);
  // The page scrolls itself once more, when React has dealt with the move.
  await tab.evaluate(`(() => {
    for (const [owner, name] of [[window, 'scrollTo'], [Element.prototype, 'scrollIntoView']]) {
      const own = owner[name];
      owner[name] = function (...args) {
        own.apply(this, args);
        window.arrived = true;
      };
    }
  })()`);
  await tab.getByRole('link', { name: 'See when it is free' }).click();
  await eventually('the page to arrive', () => tab.evaluate('window.arrived'));
  const [top, height] = await tab.evaluate("[document.getElementById('when').getBoundingClientRect().top, innerHeight]");
  assert.ok(top >= 0 && top < height, `the calendar is at ${top} of ${height}`);
  assert.deepEqual(complaints, []);
});

async function site(t, env) {
  const api = await startApi(t);
  return { api, page: await startPage(t, { api, env }) };
}

/** React marks the elements that it has hydrated. */
async function hydrated(tab) {
  await eventually('the page to be hydrated', () => tab.evaluate("Object.keys(document.querySelector('main h1')).some((key) => key.startsWith('__react'))"));
}
