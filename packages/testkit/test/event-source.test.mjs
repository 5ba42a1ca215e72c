// Event streams in a browser: a page beside two of them comes at once, and an EventSource goes on at the successor of its
// worker where it was.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { eventually, hostlerProgram, openBrowser, startHostler } from '@hostler/testkit';

/** An app that numbers its events, and goes on after `Last-Event-ID`. */
const APP = `
require('node:http').createServer((req, res) => {
  if (req.url !== '/events') return res.setHeader('content-type', 'text/html').end('<title>page</title>');
  let id = Number(req.headers['last-event-id'] ?? 0);
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const send = () => res.write(\`retry: 50\\nid: \${(id += 1)}\\ndata: \${process.pid}\\n\\n\`);
  const beat = setInterval(send, 10);
  res.on('close', () => clearInterval(beat));
}).listen(3000);
`;

/** Collects the events of an EventSource in the page. */
function listen() {
  const heard = { events: [], opened: 0 };
  const source = new EventSource('/events');
  source.onopen = () => (heard.opened += 1);
  source.onmessage = ({ lastEventId, data }) => heard.events.push([Number(lastEventId), Number(data)]);
  window.heard ??= [];
  window.heard.push(heard);
}

for (const workers of [1, 2]) {
  test(`an EventSource goes on at the successor after a rolling restart of ${workers}`, async (t) => {
    const site = await siteFor(t, workers);
    const browser = await openBrowser();
    t.after(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${site.url}/`);
    await page.evaluate(listen);
    await page.evaluate(listen);
    await eventually('events from both', async () => (await counts(page)).every((count) => count > 5));

    const { pools } = await site.status();
    assert.equal(pools[0].streams, 2);
    assert.equal(pools[0].in_use, 0);
    const other = await browser.newPage();
    await other.goto(`${site.url}/other`);
    assert.equal(await other.title(), 'page');

    const old = await pids(site);
    await promisify(execFile)(hostlerProgram(), ['restart', '--admin', new URL(site.admin).host]);
    const successors = await pids(site);
    assert.ok(successors.every((pid) => !old.includes(pid)));
    await eventually('events from a successor', async () => {
      const heard = await page.evaluate(() => window.heard);
      return heard.every(({ events }) => successors.includes(events.at(-1)[1]));
    });
    for (const { events, opened } of await page.evaluate(() => window.heard)) {
      const ids = events.map(([id]) => id);
      assert.deepEqual(ids, ids.map((_, index) => index + 1), 'no event is lost, and none comes twice');
      assert.ok(opened >= 2);
    }
  });
}

async function siteFor(t, workers) {
  const folder = await mkdtemp(join(tmpdir(), 'hostler-events-'));
  await writeFile(join(folder, 'app.cjs'), APP);
  const pool = `command = ['node', '${join(folder, 'app.cjs')}']\nworkers = ${workers}\nconcurrency = 1`;
  const site = await startHostler({ config: `[pools.app]\n${pool}\n` });
  t.after(async () => {
    await site.stop();
    await rm(folder, { recursive: true });
  });
  return site;
}

function counts(page) {
  return page.evaluate(() => window.heard.map(({ events }) => events.length));
}

async function pids(site) {
  const { pools } = await site.status();
  return pools[0].workers.map(({ pid }) => pid);
}
