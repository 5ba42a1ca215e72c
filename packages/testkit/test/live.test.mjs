// The live page in Chromium, with real workers under load: lanes, overload, a hung worker, commands, accessibility. Knows only what the page shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, openBrowser, startHostler } from '@hostler/testkit';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const APP = `
const busy = (ms) => { const until = performance.now() + ms; while (performance.now() < until); };
function neverEnds() { for (;;) Math.random(); }
require('node:http').createServer((request, response) => {
  const url = new URL(request.url, 'http://app');
  if (url.pathname === '/hang') neverEnds();
  busy(Number(url.searchParams.get('ms') ?? 10));
  response.statusCode = url.pathname === '/broken' ? 500 : 200;
  response.end('done');
}).listen(process.env.PORT);
`;

let browser;
let folder;
let site;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hostler-live-'));
  await writeFile(join(folder, 'app.cjs'), APP);
  const config = `
[pools.web]
command = "node ${join(folder, 'app.cjs')}"
workers = 2
concurrency = 1
queue = { limit = 20, fair = ["client"] }
request_timeout = "4s"
hang_timeout = "5s"
[[routes]]
match = "*"
pool = "web"
[[routes]]
match = "/files/*"
static = "${folder}"
pool = "web"
`;
  site = await startHostler({ config });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.stop();
  if (folder) await rm(folder, { recursive: true });
});

/** Opens the page. `page.complaints` has each message of its console, `page.requested` each URL and the bytes of its answer. */
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.requested = new Map();
  page.on('console', (message) => page.complaints.push(message.text()));
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('response', async (response) => {
    const request = response.request();
    // After a lost connection the page asks with HEAD whether its files are still there.
    const hasNoBody = request.method() === 'HEAD' || request.url().endsWith('/live/events');
    page.requested.set(request.url(), hasNoBody ? 0 : (await response.body()).length);
  });
  await page.goto(`${site.admin}/`);
  await page.locator('#link.good').waitFor();
  await page.locator('.pool').first().waitFor();
  return page;
}

/** Sends requests, `parallel` at a time, until the returned function is called. */
function load(parallel, path) {
  let isOver = false;
  const send = async () => {
    while (!isOver) await fetch(site.url + path).then((answer) => answer.arrayBuffer());
  };
  const all = Array.from({ length: parallel }, send);
  return () => {
    isOver = true;
    return Promise.all(all);
  };
}

const picture = (page) => page.evaluate("document.querySelector('.pool canvas').toDataURL()");

/** How many points of the lanes have this colour of the style sheet. */
const painted = (page, colour) => page.evaluate(`(() => {
  const canvas = document.querySelector('.pool canvas');
  // A copy: Chromium complains when a canvas is read often.
  const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
  const context = copy.getContext('2d', { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--${colour}').trim();
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) found += 1;
  return found;
})()`);

test('the lanes move and show what workers answer', async () => {
  const page = await open();
  const before = await painted(page, 'ok');
  assert.equal(before, 0, 'no request has come');
  const stops = [load(2, '/page'), load(1, '/broken')];
  await eventually('blocks of answered requests', async () => (await painted(page, 'ok')) > 200);
  await eventually('blocks of errors', async () => (await painted(page, 'error')) > 20);
  const first = await picture(page);
  await eventually('another picture', async () => (await picture(page)) !== first);
  await eventually('the slowest requests', () => page.locator('#slowest tbody tr').first().isVisible());
  await page.locator('#freeze').click();
  const frozen = await picture(page);
  await page.waitForFunction("new Promise((done) => setTimeout(() => done(true), 300))");
  assert.equal(await picture(page), frozen, 'a frozen picture stays');
  await Promise.all(stops.map((stop) => stop()));
  await eventually('what the keys of the fair pool have cost', async () => /client 127\.0\.0\.0\/24.*100 %/.test(await page.locator('#fair tbody tr').first().textContent()));
  await eventually('percentiles of the route', async () => /\d ms/.test(await page.locator('#routes tbody tr').first().textContent()));

  const bytes = [...page.requested.values()].reduce((sum, each) => sum + each, 0);
  assert.ok(bytes > 50_000 && bytes < 150_000, `${bytes} bytes`);
  for (const url of page.requested.keys()) assert.ok(url.startsWith(site.admin), `it asks ${url}`);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('for people who want less motion the lanes move once a second', async () => {
  const page = await open({ reducedMotion: 'reduce' });
  await page.evaluate(`(() => {
    globalThis.drawn = [];
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      if (this.canvas.closest('.pool')) globalThis.drawn.push(performance.now());
      return clear.apply(this, box);
    };
  })()`);
  await eventually('four drawings', () => page.evaluate('drawn.length >= 4'));
  const pauses = await page.evaluate('drawn.slice(1).map((at, index) => at - drawn[index])');
  assert.ok(Math.min(...pauses) > 900, `milliseconds from one drawing to the next: ${pauses}`);
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('a route with files and a pool shows its share of the CPU time of the workers', async () => {
  const page = await open();
  const stop = load(1, '/files/none?ms=20');
  await eventually('the share', async () => /\d %$/.test(await page.locator('#routes tbody tr', { hasText: '/files/*' }).textContent()));
  await stop();
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('an overloaded pool says so, and each refusal is explained', async () => {
  const page = await open();
  const stop = load(60, '/page?ms=100');
  await page.locator('.pool .pill.bad', { hasText: 'overloaded' }).waitFor({ timeout: 60_000 });
  await page.locator('.notice.bad', { hasText: 'overloaded' }).waitFor();
  await page.locator('.labels .queue.warn', { hasText: 'waiting' }).waitFor();
  await eventually('marks of refused requests', async () => (await painted(page, 'refused')) > 20);
  await page.locator('#refusals button', { hasText: /queue_full|overloaded/ }).first().click();
  const dialog = page.locator('#explain');
  await dialog.getByText('what to do').waitFor();
  assert.match(await dialog.textContent(), /too many requests/);
  assert.match((await dialog.locator('code').allTextContents()).join(), /queue\.(limit|policy)/);
  const [about] = await Promise.all([page.context().waitForEvent('page'), dialog.getByText('More about this refusal').click()]);
  await about.waitForLoadState();
  assert.match(about.url(), /\/docs\/reference\/refusals\.md#(queue_full|overloaded)-503$/);
  assert.match(await about.locator(':target').textContent(), /queue_full|overloaded/);
  await about.close();
  await page.keyboard.press('Escape');
  await stop();
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('a hung worker turns red and shows where it stands', async () => {
  const page = await open();
  const lost = fetch(`${site.url}/hang`);
  await page.locator('#oldest td', { hasText: /web\/\d/ }).first().waitFor();
  await page.locator('.labels .bad', { hasText: 'hung' }).waitFor({ timeout: 60_000 });
  await eventually('a red block', async () => (await painted(page, 'error')) > 200);
  const notice = page.locator('.notice.bad', { hasText: 'neverEnds' });
  assert.equal(await notice.locator('a').getAttribute('href'), '/docs/guide/failures.md#a-worker-hangs');
  await notice.locator('button').click();
  assert.match(await page.locator('#explain pre').textContent(), /neverEnds/);
  await lost;
  assert.deepEqual(page.complaints, []);
  await page.context().close();
});

test('a page whose Hostler is silent says so, and goes on when Hostler does', async () => {
  const page = await open();
  process.kill(site.pid, 'SIGSTOP');
  try {
    await page.locator('#link.bad').waitFor({ timeout: 60_000 });
    assert.match(await page.locator('#link').textContent(), /^no connection: Hostler is silent for 10 s$/);
  } finally {
    process.kill(site.pid, 'SIGCONT');
  }
  await page.locator('#link.good').waitFor({ timeout: 60_000 });
  await page.context().close();
});

test('a picture without all members and pools says so, and counts the slots of all', async () => {
  const members = (count) => `members = [${Array.from({ length: count }, (_, at) => `"127.0.0.1:${20_000 + at}"`).join(', ')}]`;
  const pools = Array.from({ length: 33 }, (_, at) => `[pools.p${at}]\n${members(1)}\n[[routes]]\nmatch = "/p${at}"\npool = "p${at}"\n`);
  const config = `[pools.a]\nconcurrency = 1\n${members(70)}\n[[routes]]\nmatch = "*"\npool = "a"\n${pools.join('')}`;
  const many = await startHostler({ config });
  const page = await browser.newPage();
  try {
    await page.goto(`${many.admin}/`);
    await page.getByText('0 of 70 slots in use, 0 waiting (limit 100), 6 members not shown').waitFor();
    await page.getByText('2 more pools: the picture has at most 32').waitFor();
  } finally {
    await page.close();
    await many.stop();
  }
});

test('a notice keeps its link, which may have the focus, when its figures change', async () => {
  const page = await open();
  await page.evaluate(`(() => {
    globalThis.seen = { changed: 0, rebuilt: 0 };
    const about = (nodes) => [...nodes].map((node) => [node.className, node.querySelector('a').href, node.querySelector('button')?.textContent]).join();
    new MutationObserver((records) => {
      for (const { target, addedNodes, removedNodes } of records) {
        if (target.id !== 'notices') seen.changed += removedNodes.length > 0 && target.textContent.includes('workers are new');
        else if (about(addedNodes) === about(removedNodes)) seen.rebuilt += 1;
      }
    }).observe(document.getElementById('notices'), { childList: true, subtree: true });
  })()`);
  await eventually('another number of new workers in the notice of a restart', async () => {
    const answer = await fetch(`${site.admin}/pools/web/restart`, { method: 'POST', headers: { 'hostler-command': '1' } });
    await answer.text();
    return page.evaluate('seen.changed + seen.rebuilt');
  });
  assert.equal(await page.evaluate('seen.rebuilt'), 0);
  await page.context().close();
});

test('a spare is explained, and Drain is not offered for it', async () => {
  const config = `[pools.web]\ncommand = "node ${join(folder, 'app.cjs')}"\nworkers = 1\nspares = 1\nconcurrency = 1\n[[routes]]\nmatch = "*"\npool = "web"\n`;
  const spared = await startHostler({ config });
  const page = await browser.newPage();
  try {
    await page.goto(`${spared.admin}/`);
    await page.locator('#workers tbody tr', { hasText: 'standby' }).locator('button', { hasText: 'web/2' }).click();
    const dialog = page.locator('#explain');
    await dialog.getByText('It is a spare').waitFor();
    assert.deepEqual(await dialog.locator('.buttons button').allTextContents(), ['Restart the workers of web']);
    await page.keyboard.press('Escape');
    await page.locator('#workers button', { hasText: 'web/1' }).click();
    await dialog.locator('.buttons button', { hasText: 'Drain web/1' }).waitFor();
  } finally {
    await page.close();
    await spared.stop();
  }
});

test('a pool without a process says that it is asleep, until a request wakes it', async () => {
  const config = `[pools.web]\ncommand = "node ${join(folder, 'app.cjs')}"\nworkers = { min = 0, max = 1 }\n[[routes]]\nmatch = "*"\npool = "web"\n`;
  const sleeping = await startHostler({ config });
  const page = await browser.newPage();
  try {
    await page.goto(`${sleeping.admin}/`);
    const badge = page.locator('.pool .pill', { hasText: 'asleep' });
    await badge.waitFor();
    assert.equal(await (await fetch(sleeping.url)).text(), 'done');
    await badge.waitFor({ state: 'hidden' });
  } finally {
    await page.close();
    await sleeping.stop();
  }
});

test('members have no Restart button at any moment', async () => {
  const remote = await startHostler({ config: '[pools.a]\nmembers = ["127.0.0.1:20000"]\n[[routes]]\nmatch = "*"\npool = "a"\n' });
  const page = await browser.newPage();
  try {
    await page.addInitScript({ content: `
      const isOffered = ({ textContent, hidden }) => textContent === 'Restart' && !hidden;
      const look = () => { globalThis.offered ||= [...document.querySelectorAll('.pool button')].some(isOffered); };
      new MutationObserver(look).observe(document, { childList: true, subtree: true });
    ` });
    await page.goto(`${remote.admin}/`);
    await page.locator('.pool button', { hasText: 'Pause' }).waitFor();
    assert.equal(await page.evaluate('offered'), false);
  } finally {
    await page.close();
    await remote.stop();
  }
});

test('a command asks first, and asks for the token where one is set', async () => {
  const page = await open();
  const sent = [];
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/pools/web/restart', async (route) => {
    const token = route.request().headers().authorization;
    sent.push(token ?? null);
    if (token !== 'Bearer right') return route.fulfill({ status: 401, body: 'this request needs the admin token' });
    await held;
    return route.continue();
  });
  const restart = page.locator('.pool button', { hasText: 'Restart' });
  await restart.click();
  await page.locator('#ask-no').click();
  assert.deepEqual(sent, [], 'nothing is sent before the operator has agreed');
  await restart.click();
  await page.locator('#ask-yes').click();
  await page.locator('#ask-input').fill('right');
  await page.keyboard.press('Enter');
  await page.locator('#ask-result', { hasText: 'works on it' }).waitFor();
  assert.equal(await page.locator('#ask-yes').isVisible(), false, 'a command that was sent is no question any more');
  release();
  await page.locator('#ask-result', { hasText: 'workers' }).waitFor({ timeout: 60_000 });
  assert.deepEqual(sent, [null, 'Bearer right']);
  assert.equal(await page.evaluate('localStorage.length'), 0, 'the token is kept for this tab only');
  assert.deepEqual(page.complaints.filter((text) => !text.includes('401')), []);
  await page.context().close();
});

test('the page asks for the token once, however often its tab was hidden meanwhile, and then only when it is told to', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  let connections = 0;
  await page.route('**/live/events', (route) => {
    connections += 1;
    const isRight = route.request().headers().authorization === 'Bearer right';
    return isRight ? route.continue() : route.fulfill({ status: 401, body: 'this request needs the admin token' });
  });
  await page.goto(`${site.admin}/`);
  await page.locator('#ask-input').waitFor();
  for (const isHidden of [true, false]) {
    await page.evaluate(`(() => {
      Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    })()`);
  }
  await eventually('another connection', () => connections > 1);
  await page.locator('#ask-no').click();
  await page.locator('#link', { hasText: 'a token is needed' }).waitFor();
  const before = connections;
  await eventually('two more connections', () => connections > before + 1);
  assert.equal(await page.locator('#ask').isVisible(), false, 'the question was closed');
  await page.locator('#token', { hasText: 'Enter token' }).click();
  await page.locator('#ask-input').fill('right');
  await page.keyboard.press('Enter');
  await page.locator('#link.good').waitFor();
  assert.equal(await page.locator('#ask').isVisible(), false, 'the question was answered');
  await page.reload();
  await page.locator('#link.good').waitFor();
  await page.locator('#token', { hasText: 'Forget token' }).click();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  await context.close();
});

test('axe-core finds nothing, light and dark, and a phone needs no scrolling to the side', async () => {
  const stop = load(4, '/page');
  const faults = [];
  for (const [colorScheme, width] of [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390]]) {
    // The page's policy forbids the script that axe-core is.
    const page = await open({ colorScheme, viewport: { width, height: 844 }, bypassCSP: true });
    await page.locator('#workers tbody tr').first().waitFor();
    await page.locator('.plots canvas').first().waitFor();
    await page.evaluate(AXE);
    const { violations } = await page.evaluate("globalThis.axe.run(document, { resultTypes: ['violations'] })");
    for (const { id, nodes } of violations) faults.push(`${colorScheme} ${width}: ${id}: ${nodes[0].html.slice(0, 200)}`);
    // The name of a pool may be long.
    await page.evaluate("document.getElementById('pool-choice').hidden = false, document.getElementById('pool-select').append(new Option('pool'.repeat(40)))");
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    if (overflow > 0) faults.push(`${width}: ${overflow} pixels too wide`);
    await page.context().close();
  }
  await stop();
  assert.deepEqual(faults, []);
});
