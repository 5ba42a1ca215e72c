// The guides to NestJS, Express and Fastify, followed with the real frameworks.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from '@hostler/testkit';

import { makeApp, writeInto } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { deployUnderRequests, getAs, page, start, streamed } from '../support/site.mjs';

const options = { 'server.trusted_proxies': '127.0.0.1' };
const outside = { host: 'www.example.com', 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' };
const seen = { ip: '203.0.113.7', protocol: 'https', host: 'www.example.com' };

test('NestJS: answer, addresses, event stream, shutdown hooks, and a deploy without an error', async (t) => {
  const guide = readPage('nestjs');
  const app = await makeApp(guide);
  const site = await start(t, app, guide.file('hostler.toml'), { options });
  await page(site, '/', /Hello World!/);
  assert.deepEqual(await getAs(site, '/about', outside), seen);
  await streamed(site, '/ticks', 'tick 0', 'tick 2');
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text: /Hello World!/ });
  await eventually('the hook of each old worker', () => site.log.filter((line) => line.includes('closing the database after SIGTERM')).length === 2);
});

for (const name of ['Express', 'Fastify']) {
  test(`${name}: answer, addresses, file, and a deploy without an error`, async (t) => {
    const guide = readPage('express-fastify');
    const app = await makeApp(guide, [`Make the ${name} app`], name.toLowerCase());
    const site = await start(t, app, guide.file('hostler.toml'), { options });
    const text = new RegExp(`Hello from ${name}`);
    await page(site, '/', text);
    assert.deepEqual(await getAs(site, '/about', outside), seen);
    const { answer } = await page(site, '/style.css', /teal/);
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=3600');
    await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text });
  });
}

test('Express behind another proxy: the line of the page gives the address of the client', async (t) => {
  const guide = readPage('express-fastify');
  const [line] = /app\.set\('trust proxy', \[.+?\]\)/.exec(readPage('node-apps').text) ?? assert.fail('the page has no such line');
  const app = await makeApp(guide, ['Make the Express app'], 'express');
  await writeInto(app, 'behind.js', guide.file('server.js', 'Make the Express app').replace("app.set('trust proxy', 'loopback')", line));
  const config = guide.file('hostler.toml').replace('server.js', 'behind.js');
  const site = await start(t, app, config, { file: 'behind.toml', options: { 'server.trusted_proxies': '127.0.0.1,10.0.0.0/8' } });
  const passed = { ...outside, 'x-forwarded-for': `${outside['x-forwarded-for']}, 10.0.0.5` };
  assert.deepEqual(await getAs(site, '/about', passed), seen);
});
