// Starts Hostler with the configuration of a guide, and looks at the app as its visitors and its operator do. Knows no framework.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';

import { openBrowser, startHostler } from '@hostler/testkit';

import { runCommands, writeInto } from './app.mjs';

export const A_YEAR = 'public, max-age=31536000, immutable';

/** Starts Hostler with `config` as the app's hostler.toml, after `hostler check`. The test ends it. */
export async function start(t, app, config, { file = 'hostler.toml', options, ready = true } = {}) {
  await writeInto(app, file, config);
  if (ready) await runCommands(`hostler check -c ${file}`, { cwd: app });
  const site = await startHostler({ file: `${app}/${file}`, options, ready });
  t.after(async () => {
    await site.stop();
    if (process.env.GUIDE_LOG) console.error(site.log.join('\n'));
  });
  return site;
}

/** Gets a page, which must be 200 and contain `text`. */
export async function page(site, path, text, options) {
  const answer = await fetch(`${site.url}${path}`, options);
  const body = await answer.text();
  assert.equal(answer.status, 200, `${path}: ${body.slice(0, 500)}\n${site.log.slice(-5).join('\n')}`);
  assert.match(body, text);
  return { answer, body };
}

/** The first asset of a page by pattern. Hostler itself must send it, and browsers keep it for a year. */
export async function asset(site, html, pattern) {
  const [path] = pattern.exec(html) ?? assert.fail(`no asset like ${pattern} in ${html}`);
  const answer = await fetch(`${site.url}${path}`, { headers: { 'accept-encoding': 'br' } });
  await answer.arrayBuffer();
  assert.equal(answer.status, 200, path);
  assert.equal(answer.headers.get('cache-control'), A_YEAR);
  const line = await site.logged(path);
  assert.equal(line.pool, undefined, `Hostler sends ${path} itself: ${JSON.stringify(line)}`);
  return { path, answer };
}

/** Sends a form with Ada's name as a browser on `origin` does. Unlike `fetch` it can name another host. */
export function postAs(site, { path, host, origin, headers }) {
  const all = { ...headers, host, origin, accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' };
  return ask(site, path, { method: 'POST', headers: all }, 'name=Ada');
}

/** Gets JSON with header fields, `host` among them. */
export async function getAs(site, path, headers) {
  return JSON.parse((await ask(site, path, { headers })).body);
}

async function ask(site, path, options, body) {
  const sent = request(`${site.url}${path}`, options);
  sent.end(body);
  const [answer] = await once(sent, 'response');
  return { status: answer.statusCode, headers: answer.headers, body: (await answer.setEncoding('utf8').toArray()).join('') };
}

/** Gets a page of which `first` must be there before `last` is sent. */
export async function streamed(site, path, first, last) {
  // Frameworks send a page in one piece to programs that are no browser.
  const answer = await fetch(`${site.url}${path}`, { headers: { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0' } });
  let seen = '';
  let early = false;
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    seen += part;
    early ||= seen.includes(first) && !seen.includes(last);
  }
  assert.ok(early && seen.includes(last), `${path} came as one piece: ${seen}`);
}

/** Opens a page in Chromium. `look` gets the page; afterwards the console must have no error. */
export async function inBrowser(site, path, look) {
  const browser = await openBrowser();
  try {
    const tab = await browser.newPage();
    const errors = [];
    tab.on('console', (message) => message.type() === 'error' && errors.push(`${message.text()} (${message.location().url})`));
    tab.on('pageerror', (error) => errors.push(String(error)));
    tab.on('response', (answer) => answer.status() >= 400 && errors.push(`${answer.status()} ${answer.url()}`));
    // Chromium asks for it without being told to; not every template has one.
    await tab.route('**/favicon.ico', (route) => route.fulfill({ status: 204 }));
    await tab.goto(`${site.url}${path}`);
    const result = await look(tab);
    assert.deepEqual(errors, []);
    return result;
  } finally {
    await browser.close();
  }
}

/** Runs the guide's commands of a deploy while four clients ask for a page. No client may see an error. */
export async function deployUnderRequests(site, { commands, cwd, path = '/', text }) {
  const before = (await site.status()).pools.flatMap(({ workers }) => workers.map(({ pid }) => pid));
  let over = false;
  let requests = 0;
  const clients = [1, 2, 3, 4].map(async () => {
    while (!over) {
      await page(site, path, text);
      requests += 1;
    }
  });
  const env = { HOSTLER_SERVER_ADMIN: new URL(site.admin).host };
  const { output } = await runCommands(commands, { cwd, env }).finally(() => (over = true));
  await Promise.all(clients);
  const after = (await site.status()).pools.flatMap(({ workers }) => workers.map(({ pid }) => pid));
  assert.ok(requests > 10, `only ${requests} requests`);
  assert.deepEqual(after.filter((pid) => before.includes(pid)), [], 'all workers are new');
  return { requests, output };
}
