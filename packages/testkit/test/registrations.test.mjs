// The live page of a Hostler whose members register over NATS, in Chromium with a real nats-server. Knows only what the page shows.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { eventually, openBrowser, startHostler, startNats } from '@hostler/testkit';

let nats;
let browser;
let site;
let app;

before(async () => {
  nats = await startNats();
  if (!nats) return;
  app = createServer((request, response) => response.end('from a registered member')).listen(0, '127.0.0.1');
  await once(app, 'listening');
  const config = `[registrar]\nnats = ["${nats.url}"]\nstart_delay = "0s"\n`;
  site = await startHostler({ config });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.stop();
  app?.closeAllConnections();
  app?.close();
  await nats?.stop();
});

/** Publishes a message on a subject, as any client of NATS does. */
async function publish(subject, message) {
  const [host, port] = nats.address.split(':');
  const socket = connect(Number(port), host);
  const text = JSON.stringify(message);
  socket.write(`CONNECT {"verbose":false}\r\nPUB ${subject} ${Buffer.byteLength(text)}\r\n${text}\r\nPING\r\n`);
  let heard = '';
  for await (const bytes of socket) {
    heard += bytes;
    if (heard.includes('PONG')) break;
  }
  assert.doesNotMatch(heard, /-ERR/);
}

test('the page lists each registered member with its age', async (t) => {
  if (!nats) return t.skip('there is no nats-server');
  const { port } = app.address();
  const member = { host: '127.0.0.1', port, uris: ['shop.example.com'], private_instance_id: 'a', stale_threshold_in_seconds: 60 };
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${site.admin}/`);
  const section = page.locator('#registrations-section');
  await section.waitFor();
  await eventually('the connection to NATS', async () => (await page.locator('#registrations tbody td').first().textContent()) === 'connected');
  assert.match(await page.locator('#members').textContent(), /No member is registered/);

  await publish('router.register', member);
  const row = page.locator('#members tbody tr').filter({ hasText: `127.0.0.1:${port}` });
  await row.waitFor();
  const [route, address, heard, kept] = await row.locator('td').allTextContents();
  assert.match(route, /^shop\.example\.com/);
  assert.equal(address, `127.0.0.1:${port}`);
  assert.match(heard, /^[\d.]+ m?s$/);
  assert.equal(kept, '1 min 0 s');

  await publish('router.unregister', member);
  await eventually('the member to go', async () => /No member is registered/.test(await page.locator('#members').textContent()));
});
