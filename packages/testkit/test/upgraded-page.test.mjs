// The live page in Chromium after an upgrade to another version. Knows no figures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, openBrowser, startHostler } from '@hostler/testkit';

const CONFIG = `
[[routes]]
match = "*"
respond = { status = 200, body = "hello" }
`;

test('a page whose files an upgrade has replaced is loaded anew when it connects again', async (t) => {
  const site = await startHostler({ config: CONFIG });
  t.after(() => site.stop());
  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  let asked = 0;
  await page.route('**/stream.js', (route) => {
    if (route.request().method() !== 'HEAD') return route.continue();
    asked += 1;
    return asked === 1 ? route.continue() : route.fulfill({ status: 404 });
  });
  await page.goto(`${site.admin}/`);
  let loaded = 0;
  page.on('domcontentloaded', () => {
    loaded += 1;
  });
  const connectAgain = async () => {
    await page.locator('#link.good').waitFor();
    await page.evaluate(`(() => {
      for (const hidden of [true, false]) {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }
    })()`);
  };
  await connectAgain();
  await eventually('the question for the file', () => asked === 1);
  await connectAgain();
  await eventually('the new page', () => loaded > 0);
  assert.equal(asked, 2, 'it was not loaded anew while the file was there');
  await page.locator('#link.good').waitFor();
});
