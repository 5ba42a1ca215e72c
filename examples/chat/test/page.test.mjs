// Two people in two browsers, directly at the app: what they see of each other, and what happens when the app's process
// dies.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, freePort } from '@hostler/testkit';
import { browserFor } from './page.mjs';
import { beforeItGoes, folderFor } from './visitor.mjs';

test('two people talk, see each other come and go, and markup stays text', async (t) => {
  const { url } = await serverFor(t);
  const browser = await browserFor(t);
  const ada = await browser.sit(url, 'Ada');
  const ben = await browser.sit(url, 'Ben');
  assert.deepEqual(await ben.people(), ['Ben', 'Ada']);
  await eventually('Ada to hear of Ben', async () => (await ada.notes()).includes('Ben came in'));
  const markup = '<img src=x onerror="document.title=1"><b>bold</b> & "quoted"';
  await ada.say(markup);
  await ben.reads(markup);
  await ben.page.getByRole('textbox', { name: 'Message', exact: true }).pressSequentially('well');
  await eventually('Ada to see that Ben types', async () => (await ada.page.locator('#typing').innerText()) === 'Ben is typing…');
  await ben.say('one line\nand another');
  await ada.reads('one line\nand another');
  assert.equal(await ada.page.locator('#typing').innerText(), '');
  assert.deepEqual(await ada.texts(), await ben.texts());
  assert.equal(await ada.page.locator('#log .mine').count(), 1);
  assert.equal(await ada.page.locator('#log img, #log .bubble *').count(), 0);

  await ben.page.getByRole('button', { name: /Change your name/ }).click();
  await ben.page.getByLabel('Your name').fill('Benjamin');
  await ben.page.keyboard.press('Enter');
  await eventually('Ada to hear of the new name', async () => (await ada.notes()).includes('Ben is now Benjamin'));
  await ben.context.close();
  await eventually('Ada to see Benjamin leave', async () => (await ada.notes()).includes('Benjamin left'));
  assert.deepEqual(await ada.people(), ['Ada']);
  assert.deepEqual([...ada.complaints, ...ben.complaints], []);
});

test('two tabs are one person, a reload keeps the history, and another room is separate', async (t) => {
  const { url } = await serverFor(t);
  const browser = await browserFor(t);
  const ada = await browser.sit(`${url}room/plans`, 'Ada');
  await ada.say('a plan');
  await ada.reads('a plan');
  const tab = await ada.tab(`${url}room/plans`);
  await tab.reads('a plan');
  assert.deepEqual(await tab.people(), ['Ada']);
  await tab.say('from the second tab');
  await ada.reads('from the second tab');
  assert.equal(await ada.page.locator('#log .mine').count(), 2, 'both are hers in both tabs');

  await ada.page.reload();
  await ada.reads('from the second tab');
  assert.deepEqual(await ada.texts(), ['a plan', 'from the second tab']);
  await ada.page.getByLabel('Open another room').fill('Café & Cake');
  await ada.page.keyboard.press('Enter');
  await ada.isConnected();
  assert.equal(new URL(ada.page.url()).pathname, '/talk/room/cafe-cake');
  assert.deepEqual(await ada.texts(), []);
  await ada.page.goBack();
  await ada.reads('a plan');
  assert.deepEqual([...ada.complaints, ...tab.complaints], []);
});

test('messages over the rate limit are sent a little later, in order', async (t) => {
  const { url } = await serverFor(t);
  const browser = await browserFor(t);
  const ada = await browser.sit(url, 'Ada');
  const lines = Array.from({ length: 10 }, (_, number) => `line ${number}`);
  for (const line of lines) await ada.say(line);
  await ada.reads('line 9');
  assert.deepEqual([await ada.texts(), await ada.waiting()], [lines, []]);
});

test('earlier messages come on request, and the scroll position stays', async (t) => {
  const { url, folder } = await serverFor(t);
  const lines = Array.from({ length: 130 }, (_, number) => `line ${number}`);
  const records = lines.map((text, number) => ({ id: `message-${number}-of-130`, from: `somebody-${number % 3}`, name: 'Old', text, at: 1e12 + number * 60_000 }));
  await writeFile(join(folder, 'lobby.1.jsonl'), records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  const browser = await browserFor(t);
  const ada = await browser.sit(url, 'Ada');
  await ada.reads('line 129');
  assert.deepEqual(await ada.texts(), lines.slice(30));
  const place = () => ada.page.getByText('line 30', { exact: true }).boundingBox();
  await ada.page.getByRole('button', { name: 'Show earlier messages' }).scrollIntoViewIfNeeded();
  const { y } = await place();
  await ada.page.getByRole('button', { name: 'Show earlier messages' }).click();
  await ada.reads('line 0');
  assert.deepEqual(await ada.texts(), lines);
  assert.equal(await ada.page.getByRole('button', { name: 'Show earlier messages' }).count(), 0);
  const moved = Math.abs((await place()).y - y);
  assert.ok(moved < 60, `it moved by ${moved} px`); // the button is gone, and perhaps a name
});

test('after the process dies the page reports it, reconnects, and loses and repeats no message', async (t) => {
  const server = await serverFor(t);
  const browser = await browserFor(t);
  const ada = await browser.sit(server.url, 'Ada');
  const ben = await browser.sit(server.url, 'Ben');
  await ada.say('before');
  await ben.reads('before');

  await server.end('SIGKILL');
  await eventually('the page to say that it reconnects', async () => (await ada.state()) === 'Reconnecting…');
  await ada.say('while it was away, 1');
  await ada.say('while it was away, 2');
  await ben.say('Ben, too');
  assert.deepEqual(await ada.waiting(), ['while it was away, 1', 'while it was away, 2']);
  await ada.page.reload({ waitUntil: 'commit' }).catch(() => {}); // no page can be loaded now
  await server.begin();
  await ada.page.goto(server.url);
  await ben.reads('while it was away, 2');
  await ada.reads('Ben, too');
  for (const person of [ada, ben]) {
    await person.isConnected();
    assert.deepEqual((await person.texts()).sort(), ['Ben, too', 'before', 'while it was away, 1', 'while it was away, 2']);
    assert.deepEqual(await person.waiting(), []);
    assert.ok(!(await person.notes()).includes('Ben left'));
  }
  assert.deepEqual([...ada.complaints, ...ben.complaints], []);
});

test('restarts in a row while both write: every message once, in the same order for both', async (t) => {
  const server = await serverFor(t);
  const browser = await browserFor(t);
  const [ada, ben] = [await browser.sit(server.url, 'Ada'), await browser.sit(server.url, 'Ben')];
  const wanted = [];
  for (const [round, signal] of ['SIGTERM', 'SIGKILL', 'SIGTERM'].entries()) {
    for (const [name, person] of Object.entries({ ada, ben })) {
      wanted.push(`${name} ${round}`);
      await person.say(`${name} ${round}`);
    }
    assert.equal(await server.end(signal), signal === 'SIGTERM' ? 0 : null);
    wanted.push(`away ${round}`);
    await ada.say(`away ${round}`);
    await server.begin();
  }
  for (const person of [ada, ben]) await eventually('all to have arrived', async () => (await person.texts()).length >= wanted.length);
  assert.deepEqual(await ada.texts(), await ben.texts());
  assert.deepEqual((await ada.texts()).sort(), wanted.sort());
  assert.deepEqual([await ada.waiting(), await ben.waiting()], [[], []]);
});

/** The app as `npm start` runs it, on a port that it keeps after a restart. */
async function serverFor(t) {
  const [folder, port] = [await folderFor(t), await freePort()];
  const url = `http://127.0.0.1:${port}/talk/`;
  let child;
  const begin = async () => {
    const env = { ...process.env, PORT: String(port), BASE_PATH: '/talk', DATA_FOLDER: folder };
    child = spawn(process.execPath, [fileURLToPath(new URL('../server.js', import.meta.url))], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(createInterface({ input: child.stdout }), 'line');
  };
  const end = async (signal) => {
    const gone = once(child, 'exit');
    child.kill(signal);
    return (await gone)[0];
  };
  await begin();
  beforeItGoes(folder, async () => child.exitCode === null && child.signalCode === null && end('SIGKILL'));
  return { url, folder, begin, end };
}
