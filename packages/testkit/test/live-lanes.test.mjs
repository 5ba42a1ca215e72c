// The picture of the live page in Chromium: what its lanes say of workers and requests. Knows only what the page shows.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, openBrowser, startHostler } from '@hostler/testkit';

const APP = `
require('node:http').createServer((request, response) => {
  while (request.url === '/spin' && !require('node:fs').existsSync(__dirname + '/released'));
  setTimeout(() => response.end('done'), request.url === '/late' ? 3000 : 0);
}).listen(process.env.PORT);
`;

let browser;
let folder;
let site;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hostler-lanes-'));
  await writeFile(join(folder, 'app.cjs'), APP);
  site = await startHostler({ config: `[pools.web]\ncommand = "node ${join(folder, 'app.cjs')}"\nworkers = 2\nconcurrency = 1\nrequest_timeout = "1s"\n[[routes]]\nmatch = "*"\npool = "web"\n` });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.stop();
  if (folder) await rm(folder, { recursive: true });
});

/** A point of a lane with this colour of the style sheet. Null: there is none. */
const pointIn = (page, colour) => page.evaluate(`(() => {
  const canvas = document.querySelector('.pool canvas');
  const { width, height } = canvas;
  const context = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d', { willReadFrequently: true });
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--${colour}').trim();
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const is = (at) => data[at] === red && data[at + 1] === green && data[at + 2] === blue;
  // The queue is above the lanes.
  for (let at = 40 * width * 4; at < data.length; at += 4) if (is(at)) return { x: (at / 4) % width, y: Math.floor(at / 4 / width) };
  return null;
})()`);

test('a click on the block of a refused request leads to the explanation of the refusal', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${site.admin}/`);
  await page.locator('#windows button', { hasText: '60 s' }).click();
  const answer = await fetch(`${site.url}/late`);
  assert.equal(answer.status, 504, await answer.text());
  await eventually('the block of the refused request', () => pointIn(page, 'refused'));
  await page.locator('#freeze').click();
  const position = await pointIn(page, 'refused');
  await page.locator('.pool canvas').click({ position });
  await page.locator('#tip', { hasText: 'refused: answer_timeout' }).waitFor({ state: 'attached' });
  const dialog = page.locator('#explain');
  await dialog.locator('dt', { hasText: 'what to do' }).waitFor();
  assert.match(await dialog.locator('h2').textContent(), /answer_timeout/);
  await page.close();
});

test('on a phone, a lane says that its worker is drained', async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  await page.goto(`${site.admin}/`);
  await page.locator('.labels li', { hasText: '2' }).waitFor();
  // Refused while the other worker boots: it was killed if the late request of the test before was longer in it than its hang_timeout.
  await eventually('the command is taken', async () => {
    const answer = await fetch(`${site.admin}/pools/web/workers/2/drain`, { method: 'POST', headers: { 'hostler-command': '1' } });
    await answer.text();
    return answer.status === 200;
  });
  await page.locator('.labels .state', { hasText: 'drained' }).waitFor({ timeout: 60_000 });
  await page.close();
});

test('a blocked worker is called so in its lane, in the table and in a notice', async () => {
  const config = `[pools.web]\ncommand = "node ${join(folder, 'app.cjs')}"\nworkers = 2\nspares = 0\nconcurrency = 1\nrequest_timeout = "1h"\n[[routes]]\nmatch = "*"\npool = "web"\n`;
  const blocked = await startHostler({ config });
  const page = await browser.newPage();
  const answer = fetch(`${blocked.url}/spin`).catch(() => null);
  try {
    await page.goto(`${blocked.admin}/`);
    await page.locator('.labels .state', { hasText: 'blocked' }).waitFor({ timeout: 60_000 });
    await page.locator('#workers tbody tr', { hasText: 'blocked for' }).waitFor();
    await page.locator('.notice.warn', { hasText: 'has been blocked for' }).locator('button').click();
    await page.locator('#explain dt', { hasText: 'blocked' }).waitFor();
  } finally {
    await writeFile(join(folder, 'released'), '');
    await answer;
    await page.close();
    await blocked.stop();
  }
});
