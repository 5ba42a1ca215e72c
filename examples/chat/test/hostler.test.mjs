// The chat behind Hostler: WebSockets through it, and what people notice of restarts, crashes and a stop. The app does
// not know Hostler.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually, hostlerProgram, startHostler } from '@hostler/testkit';
import { browserFor } from './page.mjs';
import { beforeItGoes, connect, enter, folderFor } from './visitor.mjs';

const FILE = fileURLToPath(new URL('../hostler.toml', import.meta.url));

test('two people talk through Hostler, and a restart and a crash lose and repeat no message', async (t) => {
  const site = await siteFor(t);
  const browser = await browserFor(t);
  const [ada, ben] = [await browser.sit(`${site.url}/`, 'Ada'), await browser.sit(`${site.url}/`, 'Ben')];
  const wanted = [];
  const talk = async (when) => {
    for (const [name, person] of Object.entries({ Ada: ada, Ben: ben })) {
      wanted.push(`${name} ${when}`);
      await person.say(`${name} ${when}`);
    }
  };
  await talk('to begin with');

  const restarted = order(site, 'restart');
  await talk('during the restart');
  await restarted;
  await talk('after the restart');

  const [pid] = await pids(site);
  process.kill(pid, 'SIGKILL');
  await talk('after the crash');
  await eventually('another worker', async () => (await pids(site)).some((each) => each && each !== pid));

  for (const person of [ada, ben]) {
    await eventually('all to have arrived', async () => (await person.texts()).length >= wanted.length);
    await person.isConnected();
  }
  assert.deepEqual(await ada.texts(), await ben.texts());
  assert.deepEqual((await ada.texts()).sort(), wanted.sort());
  assert.deepEqual([await ada.waiting(), await ben.waiting()], [[], []]);
  assert.deepEqual(await ada.people(), ['Ada', 'Ben']);
  assert.deepEqual([...ada.complaints, ...ben.complaints], []);
});

test('the app’s own rules hold behind Hostler: foreign pages, large frames and floods', async (t) => {
  const site = await siteFor(t);
  const host = new URL(site.url).host;
  assert.match((await connect(t, host, { origin: 'https://elsewhere.test' })).error.message, /403/);
  assert.match((await connect(t, host, { path: '/nowhere' })).error.message, /404/);
  const ada = await enter(t, host, { origin: site.url });
  const large = await enter(t, host);
  large.send('x'.repeat((8 << 10) + 1));
  assert.equal((await large.isClosed()).code, 1009);
  const binary = await enter(t, host);
  binary.send(Buffer.from([1, 2, 3]));
  assert.equal((await binary.isClosed()).code, 1003);
  const flood = await enter(t, host);
  for (let count = 0; count < 2_000; count += 1) flood.send({ kind: 'ping' });
  assert.equal((await flood.isClosed()).code, 1008);
  ada.say('still here');
  await ada.hears('still here');
});

test('forty connections hold no slot, and all get a close frame when Hostler stops', async (t) => {
  const site = await siteFor(t, { 'pools.chat.concurrency': 1 });
  const host = new URL(site.url).host;
  const people = await Promise.all(Array.from({ length: 40 }, () => enter(t, host)));
  assert.equal((await fetch(`${site.url}/`)).status, 200);
  people[0].say('hello, everybody');
  await Promise.all(people.map((each) => each.hears('hello, everybody')));
  const stopped = site.stop();
  for (const each of people) assert.equal((await each.isClosed()).code, 1001);
  await stopped;
});

/** The example with its own configuration and a folder of its own. */
async function siteFor(t, options = {}) {
  const folder = await folderFor(t);
  const site = await startHostler({ file: FILE, options: { 'pools.chat.env.DATA_FOLDER': folder, ...options } });
  beforeItGoes(folder, () => site.stop());
  return site;
}

async function pids(site) {
  const { pools } = await site.status();
  return pools[0].workers.map(({ pid }) => pid);
}

function order(site, word) {
  return promisify(execFile)(hostlerProgram(), [word, '--admin', new URL(site.admin).host]);
}
