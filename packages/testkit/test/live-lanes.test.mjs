// The picture of the live page in Chromium: what its lanes say of workers. Knows only what the page shows.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openBrowser, startHostler } from '@hostler/testkit';

const APP = "require('node:http').createServer((_request, response) => response.end('done')).listen(process.env.PORT);";

let browser;
let folder;
let site;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hostler-lanes-'));
  await writeFile(join(folder, 'app.cjs'), APP);
  site = await startHostler({ config: `[pools.web]\ncommand = "node ${join(folder, 'app.cjs')}"\nworkers = 2\nconcurrency = 1\n[[routes]]\nmatch = "*"\npool = "web"\n` });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.stop();
  if (folder) await rm(folder, { recursive: true });
});

test('on a phone, a lane says that its worker is drained', async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  await page.goto(`${site.admin}/`);
  await page.locator('.labels li', { hasText: '2' }).waitFor();
  const answer = await fetch(`${site.admin}/pools/web/workers/2/drain`, { method: 'POST', headers: { 'hostler-command': '1' } });
  assert.equal(answer.status, 200, await answer.text());
  await page.locator('.labels .state', { hasText: 'drained' }).waitFor({ timeout: 60_000 });
  await page.close();
});
