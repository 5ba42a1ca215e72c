// The page about symptoms: each one is made with the page's own app, and must look as the page says. Knows no framework.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from '@hostler/testkit';

import { makeApp, runCommands } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { start } from '../support/site.mjs';

const guide = readPage('troubleshooting');
const HEADING = 'Something is slow or fails';

async function begin(t, options) {
  const app = await makeApp(guide, [HEADING]);
  const site = await start(t, app, guide.file('hostler.toml'), { options });
  const status = async () => (await runCommands('hostler status', { cwd: app, env: { HOSTLER_SERVER_ADMIN: new URL(site.admin).host } })).output;
  return { site, status };
}

const refusal = async (site, path, options) => {
  const answer = await fetch(`${site.url}${path}`, options);
  await answer.text();
  return [answer.status, answer.headers.get('hostler-refusal')];
};

test('Slow: the status shows the wait in the queue, and 503 has the reason of the page', async (t) => {
  const { site, status } = await begin(t);
  const answers = await Promise.all(Array.from({ length: 12 }, () => refusal(site, '/compute')));
  assert.ok(answers.some(([code, reason]) => code === 503 && reason === 'queue_full'), JSON.stringify(answers));
  assert.match(await status(), /queue wait .*\n.*slot hold .*\n.*worker time .*[^]*slots: by the event loop[^]*queue_full \d/);
});

test('502, 504 and restarts: the header, the log and the last exit are those of the page', async (t) => {
  const { site, status } = await begin(t);
  assert.deepEqual(await refusal(site, '/never'), [504, 'answer_timeout']);
  assert.deepEqual(await refusal(site, '/crash', { method: 'POST' }), [502, 'worker_lost']);
  // Until then: `suspect`, while a worker begins.
  await eventually('the reason', async () => (await refusal(site, '/crash'))[1] === 'poison');
  const died = await eventually('a line about the death', () => site.log.findIndex((line) => line.includes(': died (')) + 1);
  assert.ok(site.log.slice(0, died).some((line) => line.includes('"event":"worker"') && line.includes('no such customer')));
  await eventually('the last exit in the status', async () => /ready .* exit code 1/.test(await status()));
});

test('Memory: a worker over max_memory is replaced, and the status has the reason', async (t) => {
  const { site } = await begin(t, { 'pools.web.workers': 1 });
  for (let i = 0; i < 4; i += 1) await refusal(site, '/keep');
  const recycled = await eventually('the replacement', async () => (await site.status()).pools[0].workers.find((worker) => worker.recycled)?.recycled);
  assert.match(recycled, /MiB resident/);
});

test('The app does not start: the status shows it, and the log has the error of the app', async (t) => {
  const app = await makeApp(guide, [HEADING]);
  const site = await start(t, app, guide.file('hostler.toml').replace('server.js', '--require ./lost.js server.js'), { file: 'lost.toml', ready: false });
  await eventually('the error', () => site.log.some((line) => line.includes('"event":"worker"') && line.includes('Cannot find module')));
  await eventually('back-off', async () => (await site.status()).pools[0].workers.some(({ state }) => state === 'backing off'));
});
