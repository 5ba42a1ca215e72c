// The page in Chromium, behind Hostler with its own configuration and the real data: search, choice, and services that do
// not answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, openBrowser, startHostler } from '@hostler/testkit';

const FILE = fileURLToPath(new URL('../hostler.toml', import.meta.url));
const MINNEAPOLIS = '128.101.101.101';
const LONDON = '81.2.69.160';

let site;
let browser;
before(async () => {
  site = await startHostler({ file: FILE });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

test('a visitor on this machine gets a notice, and may choose a town', async (t) => {
  const page = await open(t);
  await reads(page, '#you', /this very machine, 127\.0\.0\.1, and no database/);
  await page.getByRole('button', { name: 'Portland, OR' }).click();
  await reads(page, '#place', /97209 Portland, OR.*County: Multnomah · 45\.5\d° N 122\.6\d° W/s);
  assert.equal(new URL(page.url()).hash, '#97209');
  const near = await page.locator('#near-list button').allInnerTexts();
  assert.equal(near.length, 12);
  assert.ok(near.every((row) => /^\d{5}/.test(row) && /\d (mi|km)$/.test(row)), near.join('; '));
});

test('a visitor is found by the address, and sees the places around', async (t) => {
  const page = await open(t, { from: MINNEAPOLIS });
  await reads(page, '#you', /in or near Minneapolis, Minnesota.* says your address 128\.101\.101\.101/);
  await reads(page, '#near-title', 'Codes around Minneapolis');
  assert.match(await page.getByRole('img').getAttribute('aria-label'), /codes around Minneapolis; the nearest is 55\d{3}/);
  assert.equal(await page.locator('#suggestions').isVisible(), false);
});

test('a visitor from elsewhere is found, and shown where there are codes', async (t) => {
  const page = await open(t, { from: LONDON });
  await reads(page, '#you', /in or near London.*The codes here are American/);
  assert.equal(await page.locator('#suggestions button').count(), 5);
});

test('a name is completed while it is typed, by keyboard alone', async (t) => {
  const page = await open(t);
  const field = page.getByRole('combobox', { name: 'A town, or a postal code' });
  await field.pressSequentially('portla');
  // On a busy machine, a list for the first letters only can come before the last one is typed. Each key clears the note.
  await eventually('places to be offered', async () => (await page.locator('#search-note').innerText()) !== '');
  assert.equal(await field.getAttribute('aria-expanded'), 'true');
  const options = page.getByRole('option');
  assert.ok((await options.allInnerTexts()).every((text) => text.includes('Portland')), (await options.allInnerTexts()).join('; '));
  await page.keyboard.press('ArrowDown');
  const active = await field.getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
  const name = await page.locator(`#${active} b`).innerText();
  await page.keyboard.press('Enter');
  await reads(page, '#near-title', 'Codes around Portland');
  assert.equal(await field.inputValue(), name);
  assert.equal(await field.getAttribute('aria-expanded'), 'false');
});

test('a state may follow a name, as its code or as its name', async (t) => {
  const page = await open(t);
  for (const text of ['portland, me', 'portland, maine', 'portland, mai']) {
    await page.getByRole('combobox').fill(text);
    await eventually('places to be offered', async () => (await page.locator('#search-note').innerText()) !== '');
    const options = await page.getByRole('option').allInnerTexts();
    assert.match(options[0], /^Portland, ME/, text);
    assert.ok(options.every((option) => option.includes(', ME')), `${text}: ${options.join('; ')}`);
  }
});

test('digits highlight the codes that begin with them', async (t) => {
  const page = await open(t);
  const field = page.getByRole('combobox');
  await eventually('the dots', async () => {
    await field.fill('');
    await field.fill('972');
    return /^[1-9]\d* codes begin with 972$/.test(await page.locator('#counted').innerText());
  });
  await eventually('codes to be offered', async () => (await page.getByRole('option').count()) > 0);
  assert.ok((await page.getByRole('option').allInnerTexts()).every((text) => /972\d\d/.test(text)));
  await page.keyboard.press('Escape');
  assert.equal(await field.getAttribute('aria-expanded'), 'false');
  await page.keyboard.press('Escape');
  assert.equal(await field.inputValue(), '');
  assert.equal(await page.locator('#counted').isVisible(), false);
});

test('an unknown name, an invalid code and an invalid address get a message', async (t) => {
  const page = await open(t);
  await page.getByRole('combobox').fill('xyzzyx');
  await reads(page, '#search-note', 'No places');
  await page.goto(`${site.url}/#00000`);
  await reads(page, '#place-title', 'There is no postal code 00000.');
  await page.getByText('Look up another address').click();
  await page.getByLabel('An IP address').fill('somewhere');
  await page.keyboard.press('Enter');
  await reads(page, '#you', 'That is not an IP address.');
  await page.getByLabel('An IP address').fill(LONDON);
  await page.keyboard.press('Enter');
  await reads(page, '#you', /81\.2\.69\.160 is probably in or near London/);
});

test('the back button shows the previous place, and a URL with a code shows that place', async (t) => {
  const page = await open(t, { at: '/#99701' });
  await reads(page, '#place', /99701 Fairbanks, AK/);
  await page.locator('#near-list button').first().click();
  await eventually('another code', async () => !(await page.locator('#place').innerText()).startsWith('99701'));
  await page.goBack();
  await reads(page, '#place', /99701 Fairbanks, AK/);
});

test('the page reports that the services are unavailable', async (t) => {
  const page = await open(t, { broken: true });
  await reads(page, '#you', /cannot be said at the moment/);
  await page.getByRole('combobox').fill('portland');
  await reads(page, '#search-note', 'No answer at the moment');
  await page.getByRole('button', { name: 'Hilo, HI' }).click();
  await reads(page, '#place-title', 'The codes cannot be asked at the moment.');
});

test('the data is named, with links to its providers', async (t) => {
  const page = await open(t);
  const targets = await page.locator('footer a').evaluateAll((links) => links.map(({ href }) => href));
  for (const wanted of ['https://db-ip.com/', 'https://www.geonames.org/']) assert.ok(targets.includes(wanted), targets.join(' '));
});

/** The page in its own profile. Any error of the page fails the test. `broken`: its services do not answer. */
async function open(t, { from, at = '/', broken = false } = {}) {
  const context = await browser.newContext({
    reducedMotion: 'reduce',
    ...(from ? { extraHTTPHeaders: { 'x-forwarded-for': from } } : {}),
  });
  const page = await context.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  // The browser itself reports each response with a 4xx.
  page.on('console', (message) => message.type() === 'error' && !/Failed to load resource/.test(message.text()) && complaints.push(message.text()));
  if (broken) await page.route('**/api/**', (route) => route.abort());
  await page.goto(`${site.url}${at}`);
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, []);
  });
  return page;
}

/** Waits until a part of the page has this text. */
async function reads(page, selector, expected) {
  let last;
  await eventually(`${selector} to say ${expected}`, async () => {
    last = (await page.locator(selector).textContent()).trim();
    if (typeof expected === 'string' ? last === expected : expected.test(last)) return true;
    throw new Error(`it says: ${last}`);
  });
}
