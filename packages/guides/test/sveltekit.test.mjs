// The guide to SvelteKit, followed with the real SvelteKit, and the deploy by releases of the page about deploys.
import assert from 'node:assert/strict';
import { cp, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { test } from 'node:test';

import { makeApp } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { asset, deployUnderRequests, inBrowser, page, start } from '../support/site.mjs';

const guide = readPage('sveltekit');
const text = /Welcome to SvelteKit/;

test('SvelteKit: page, asset, form, and a deploy without an error', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'));
  const { body } = await page(site, '/', text);
  const { answer } = await asset(site, body, /\/_app\/immutable\/[^"']+\.js/);
  assert.equal(answer.headers.get('content-encoding'), 'br', 'the compressed form of the build');
  await inBrowser(site, '/form', async (tab) => {
    await tab.locator('input').fill('Ada');
    await tab.getByRole('button').click();
    await tab.getByText('Hello Ada at 127.0.0.1').waitFor();
  });
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text });
});

test('SvelteKit: a form that another site sends is refused, and one over https is not', async (t) => {
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'), {
    options: { 'server.trusted_proxies': '127.0.0.1', 'pools.web.env.XFF_DEPTH': 2 },
  });
  const post = (headers) => fetch(`${site.url}/form`, { method: 'POST', body: new URLSearchParams({ name: 'Ada' }), headers });
  const outside = { 'x-forwarded-host': 'www.example.com', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' };

  const own = await post({ ...outside, accept: 'text/html', origin: 'https://www.example.com' });
  const foreign = await post({ ...outside, accept: 'text/html', origin: 'https://evil.example' });

  assert.equal(own.status, 200);
  assert.match(await own.text(), /Hello Ada at 203\.0\.113\.7/);
  assert.equal(foreign.status, 403);
});

test('Releases: a deploy by a link loses no request, and keeps the assets of open pages', async (t) => {
  const deploys = readPage('deploys');
  const built = await makeApp(guide);
  const shop = `${built}/../shop`;
  await rm(shop, { recursive: true, force: true });
  await mkdir(`${shop}/releases`, { recursive: true });
  await cp(built, `${shop}/releases/1`, { recursive: true, verbatimSymlinks: true });
  await cp(`${built}/build/client/_app/immutable`, `${shop}/assets`, { recursive: true });
  await symlink('releases/1', `${shop}/current`);
  const site = await start(t, shop, deploys.file('hostler.toml'));
  const { body } = await page(site, '/', text);
  const { path } = await asset(site, body, /\/_app\/immutable\/[^"']+\.js/);

  await deployUnderRequests(site, { commands: deploys.commands('Releases'), cwd: shop, text });

  assert.equal(await readlink(`${shop}/current`), 'releases/2');
  assert.equal((await fetch(`${site.url}${path}`)).status, 200, 'an asset of the version before');
  await inBrowser(site, '/form', (tab) => tab.getByRole('button').waitFor());
});
