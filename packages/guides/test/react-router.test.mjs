// The guide to React Router, followed with the real React Router.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeApp } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { asset, deployUnderRequests, inBrowser, page, postAs, start, streamed } from '../support/site.mjs';

const guide = readPage('react-router');
const text = /Hello .*React Router/;

test('React Router: page, asset, stream, action, and a deploy without an error', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'), { options: { 'server.trusted_proxies': '127.0.0.1' } });
  const { body } = await page(site, '/', text);
  await asset(site, body, /\/assets\/[^"']+\.js/);
  await streamed(site, '/', 'Please wait', 'The slow part');
  await inBrowser(site, '/', async (tab) => {
    await tab.getByText('The slow part').waitFor();
    await tab.locator('input').fill('Ada');
    await tab.getByRole('button').click();
    await tab.getByText('Hello Ada').waitFor();
  });
  const form = { path: '/?index', host: 'www.example.com', headers: { 'x-forwarded-proto': 'https' } };
  const own = await postAs(site, { ...form, origin: 'https://www.example.com' });
  const foreign = await postAs(site, { ...form, origin: 'https://evil.example' });
  assert.equal(own.status, 200, own.body);
  assert.match(own.body, /Hello .*Ada/);
  assert.equal(foreign.status, 400);
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text });
});
