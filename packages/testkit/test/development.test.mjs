// hostler run --watch in Chromium: a broken change shows its error in place of the page, and the mended change brings the page back.
// WATCH_SCREENSHOTS names a folder for screenshots.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, openBrowser, startHostler } from '@hostler/testkit';

const app = (name) => `// A shop.
const { createServer } = require('http');
const page = '<!doctype html><title>Shop</title><h1>${name}</h1><button>Ask</button><p></p>' +
  '<script>document.querySelector("button").onclick = async () => {' +
  'document.querySelector("p").textContent = await (await fetch("/price")).text(); };</script>';
createServer((req, res) => {
  if (req.url === '/price') return res.end('price of ${name}');
  res.setHeader('Content-Type', 'text/html');
  res.end(page);
}).listen(3000);
`;
const BROKEN = `${app('two')}\nconst settings = require('./settings.json');\nconnect(settings.database.<host>);\n`;

let chromium;
let folder;
let site;
before(async () => {
  chromium = await openBrowser();
  folder = await mkdtemp(join(tmpdir(), 'hostler-watch-'));
});
after(async () => {
  await chromium?.close();
  await site?.stop();
  await rm(folder, { recursive: true });
});

const edit = (text) => writeFile(join(folder, 'app.cjs'), text);

async function screenshot(page, name) {
  const to = process.env.WATCH_SCREENSHOTS;
  if (to) await page.screenshot({ path: join(to, `watch-${name}.png`), fullPage: true });
}

async function watch(ready = true) {
  await site?.stop(); // of a test that has failed; while it runs, this process does not end
  site = await startHostler({ run: ['--watch', '--', 'node', 'app.cjs'], cwd: folder, ready });
  return site;
}

/** What a page must have for all readers: contrast is checked by eye, the rest here. */
async function assertReadable(page) {
  assert.equal(await page.locator('h1').innerText(), 'The app does not start');
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, 'no sideways scrolling');
}

test('a broken change is shown in place of the page, and the page comes back when it is mended', async () => {
  await edit(app('one'));
  await watch();
  const page = await chromium.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(site.url);
  assert.equal(await page.locator('h1').innerText(), 'one');

  await edit(BROKEN);
  await page.getByRole('button').click();
  await page.getByText('price of one').waitFor(); // a script's request goes to the old worker
  // The change is noticed a moment after it.
  await eventually('the error in place of the page', async () => {
    await page.reload();
    return (await page.locator('h1').innerText()) === 'The app does not start';
  });
  await assertReadable(page);
  assert.match(await page.locator('.error').innerText(), /^SyntaxError: Unexpected token '<'$/);
  await page.getByText('connect(settings.database.<host>);').first().waitFor();
  await page.getByText('Waiting for a change').waitFor();
  await screenshot(page, 'broken-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await screenshot(page, 'broken-dark');
  await page.setViewportSize({ width: 380, height: 760 });
  await assertReadable(page);
  await screenshot(page, 'broken-phone');

  await edit(app('two').replace('createServer((', 'missing((')); // broken in another way: the page says so by itself
  await page.getByText('ReferenceError: missing is not defined').first().waitFor();
  await edit(app('three'));
  await page.getByRole('heading', { name: 'three' }).waitFor();
  await page.getByRole('button').click();
  await page.getByText('price of three').waitFor();
  await screenshot(page, 'mended');
  assert.deepEqual(complaints, []);
  await page.close();
  await site.stop();
});

test('an app that is broken from the start is shown, and its page comes when it is mended', async () => {
  await edit('throw new Error("no database at 127.0.0.1:5432");');
  await watch(false);
  const page = await chromium.newPage();
  await page.goto(site.url, { waitUntil: 'commit' });
  // The first request may have come before the failure: then it waits in the queue, and the browser gets a refusal.
  await page.waitForFunction(() => document.querySelector('.error') || (location.reload(), false), undefined, { polling: 500 }).catch(() => page.goto(site.url));
  await page.getByText('No older code is running').waitFor();
  await screenshot(page, 'first');
  await edit(app('mended'));
  await page.getByRole('heading', { name: 'mended' }).waitFor();
  await page.close();
  await site.stop();
});
