// The guides for apps that ran under PM2, nginx Unit or Passenger, followed with the real PM2. Knows no framework.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { request } from 'node:https';
import { once } from 'node:events';
import { test } from 'node:test';

import { eventually, freePort } from '@hostler/testkit';

import { makeApp, runCommands, writeInto } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { deployUnderRequests, page, start } from '../support/site.mjs';

test('PM2: the app runs under PM2 and under Hostler side by side, sees the same, and PM2 can leave', async (t) => {
  const port = await freePort();
  const guide = readPage('from-pm2').with({ 3000: port });
  const headings = ['The app under PM2', 'Stop PM2'];
  const app = await makeApp(guide, [headings[0]], 'from-pm2', { except: 'pm2 start' });
  const env = { PM2_HOME: `${app}/.pm2` };
  const [begin, end] = ['pm2 start', 'pm2 kill'].map((words, at) => guide.section(headings[at]).find(({ text }) => text.includes(words)).text);
  await writeInto(app, 'ecosystem.config.cjs', guide.file('ecosystem.config.cjs'));
  t.after(() => runCommands(end, { cwd: app, env }));
  await runCommands(begin, { cwd: app, env });
  const underPm2 = await eventually('the app under PM2', async () => (await fetch(`http://127.0.0.1:${port}`)).json());

  const site = await start(t, app, guide.file('hostler.toml'));
  const underHostler = JSON.parse((await page(site, '/', /instance/)).body);

  assert.deepEqual({ ...underHostler, instance: undefined, flags: [] }, { ...underPm2, instance: undefined, flags: [] });
  assert.match(`${underPm2.instance} ${underHostler.instance}`, /^[01] [01]$/);
  assert.ok(underHostler.flags.includes('--max-old-space-size=512'));
  await runCommands(end, { cwd: app, env });
  await assert.rejects(fetch(`http://127.0.0.1:${port}`), 'PM2 has left, and Hostler opens no port');
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text: /production/ });
});

test('nginx Unit: files, the app, redirects and fixed answers of the converted example', async (t) => {
  const guide = readPage('from-unit');
  const app = await makeApp(guide, ['A complete example']);
  await writeInto(app, 'public/style.css', 'h1 { color: teal }');
  const [unit] = guide.section('A complete example').filter(({ language }) => language === 'json');
  assert.ok(JSON.parse(unit.text).applications.shop);

  const site = await start(t, app, guide.file('hostler.toml'));

  const file = await page(site, '/style.css', /teal/);
  assert.equal(file.answer.headers.get('cache-control'), 'max-age=3600');
  await page(site, '/cart', /Hello from \/cart/);
  await page(site, '/healthz', /^$/);
  const moved = await fetch(`${site.url}/old/page`, { redirect: 'manual' });
  assert.deepEqual([moved.status, moved.headers.get('location')], [301, '/new/']);
});

test('Passenger: files and an app that knows Passenger, over TLS', async (t) => {
  const guide = readPage('from-passenger');
  const app = await makeApp(guide, ['A complete example']);
  await writeInto(app, 'public/style.css', 'h1 { color: teal }');
  mkdirSync(`${app}/tls`, { recursive: true });
  const files = ['-keyout', 'tls/shop.key', '-out', 'tls/shop.pem'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=www.example.com', ...files], { cwd: app, stdio: 'ignore' });

  const port = await freePort();
  await start(t, app, guide.file('hostler.toml'), { options: { 'tls.listen': `127.0.0.1:${port}` } });

  for (const [path, text] of [['/style.css', /teal/], ['/', /Hello from production/]]) {
    const sent = request({ port, path, host: '127.0.0.1', rejectUnauthorized: false }).end();
    const [answer] = await once(sent, 'response');
    assert.match((await answer.setEncoding('utf8').toArray()).join(''), text);
  }
});
