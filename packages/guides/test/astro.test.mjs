// The guide to Astro, followed with the real Astro.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeApp } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { asset, deployUnderRequests, inBrowser, page, postAs, start } from '../support/site.mjs';

const guide = readPage('astro');

test('Astro: page, asset, form, addresses, and a deploy without an error', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'), { options: { 'server.trusted_proxies': '127.0.0.1' } });
  const { body } = await page(site, '/', /Hello Astro/);
  await asset(site, body, /\/_astro\/[^"']+\.js/);
  await inBrowser(site, '/', async (tab) => {
    await tab.locator('body[data-script=ran]').waitFor();
    await tab.locator('input').fill('Ada');
    await tab.getByRole('button').click();
    await tab.getByText('Hello Ada').waitFor();
  });
  const form = { path: '/', host: 'www.example.com', headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' } };
  const own = await postAs(site, { ...form, origin: 'https://www.example.com' });
  const foreign = await postAs(site, { ...form, origin: 'https://evil.example' });
  assert.equal(own.status, 200);
  assert.match(own.body, /Hello Ada.*https:\/\/www\.example\.com\/ for 203\.0\.113\.7/s);
  assert.equal(foreign.status, 403);
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text: /Hello Astro/ });
});
