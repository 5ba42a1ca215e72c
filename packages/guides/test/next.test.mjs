// The guide to Next.js, followed with the real Next.js: by `next start`, and as standalone output.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { test } from 'node:test';

import { makeApp, runCommands } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { asset, deployUnderRequests, inBrowser, page, start, streamed } from '../support/site.mjs';
import { freeAddresses, inBackground } from '../support/terminal.mjs';

const guide = readPage('next');

/** What visitors see, the same for both ways to start. */
async function lookAround(site) {
  const { body, answer } = await page(site, '/', /Hello World!/, { headers: { 'accept-encoding': 'gzip' } });
  assert.equal(answer.headers.get('content-encoding'), 'gzip');
  await asset(site, body, /\/_next\/static\/[^"']+\.js/);
  await streamed(site, '/demo', 'Please wait', 'The slow part');
  await inBrowser(site, '/demo', async (tab) => {
    await tab.waitForFunction(() => Object.keys(document.querySelector('button')).some((key) => key.startsWith('__react')));
    await tab.getByRole('button').click();
    await tab.getByText('Hello World!').waitFor();
    assert.equal(new URL(tab.url()).pathname, '/');
  });
  // The redirect of the action: Next.js gets the page from itself.
  assert.doesNotMatch(site.log.join('\n'), /failed to (?:get redirect|forward action) response/);
}

test('Next.js by next start: page, asset, stream, Server Action, and a deploy without an error', async (t) => {
  const app = await makeApp(guide, ['Make the app', 'Build']);
  const site = await start(t, app, guide.file('hostler.toml', 'With next start'));
  await lookAround(site);
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text: /Hello World!/ });
});

test('Next.js as standalone output: page, asset, stream, Server Action, and a deploy without an error', async (t) => {
  const app = await makeApp(guide, ['Make the app', 'Standalone output'], 'next-standalone');
  const site = await start(t, app, guide.file('hostler.toml', 'Standalone output'));
  await lookAround(site);
  await deployUnderRequests(site, { commands: guide.commands('Deploy'), cwd: app, text: /Hello World!/ });
});

test('Next.js, the page for its teams: build, init, check and start', async (t) => {
  const app = await makeApp(guide, ['Make the app', 'Build']);
  const [write, begin] = readPage('../readers/next').section('Do this first').map(({ text }) => text);
  await rm(`${app}/hostler.toml`, { force: true }); // of the tests above
  const { url, env } = await freeAddresses();
  await runCommands(write, { cwd: app, env });
  assert.match(await inBackground(t, begin, { cwd: app, env }).answers(url), /Hello World!/);
});
