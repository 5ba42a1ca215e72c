// The guide to Nuxt, followed with the real Nuxt.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeApp } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { asset, deployUnderRequests, getAs, inBrowser, page, start } from '../support/site.mjs';

const guide = readPage('nuxt');
const text = /Hello from Nuxt/;

test('Nuxt: page, asset, addresses, and a deploy without an error', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'), { options: { 'server.trusted_proxies': '127.0.0.1' } });
  const { body } = await page(site, '/', text);
  await asset(site, body, /\/_nuxt\/[^"']+\.js/);
  const latest = await page(site, '/_nuxt/builds/latest.json', /"id"/);
  assert.match(latest.answer.headers.get('cache-control'), /max-age=1\b/);
  const outside = { host: 'www.example.com', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' };
  const about = await getAs(site, '/api/about', outside);
  assert.deepEqual(about, { app: 'Nuxt', url: 'https://www.example.com/api/about', client: '203.0.113.7' });
  await inBrowser(site, '/', async (tab) => {
    await tab.waitForFunction(() => document.querySelector('#__nuxt')?.__vue_app__);
    await tab.getByRole('button').click();
    await tab.getByText('Clicked 1 times').waitFor();
  });
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text });
});
