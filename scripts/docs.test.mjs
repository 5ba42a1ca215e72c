// The documentation site: each page is in the menu, and the built pages have no dead link, load nothing from other hosts and have no fault
// for axe-core. Knows no page by name.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { openBrowser } from '@hostler/testkit';

import { buildBook, deadLinks, filesOf } from './docs/book.mjs';
import { linked, placeOf } from './docs/preprocessor.mjs';
import { root } from './steps.mjs';

const MDBOOK = process.env.TEST_MDBOOK ?? join(root, 'target/tools/python/bin/mdbook');
const skip = existsSync(MDBOOK) ? false : 'there is no mdBook: node scripts/tools.mjs installs it';
const FOLDER = join(root, 'target/book-test');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

before(async () => {
  if (!skip) await buildBook(MDBOOK, FOLDER);
});
after(() => rmSync(FOLDER, { recursive: true, force: true }));

test('docs/SUMMARY.md names each page of docs once', () => {
  const named = [...readFileSync(join(root, 'docs/SUMMARY.md'), 'utf8').matchAll(/\]\(([^)\s]+)\)/g)].map(([, path]) => path);
  const pages = readdirSync(join(root, 'docs'), { recursive: true }).filter((name) => name.endsWith('.md') && name !== 'SUMMARY.md');
  assert.deepEqual(pages.filter((name) => !named.includes(name)), [], 'add a row to docs/SUMMARY.md for each of these');
  assert.deepEqual(named.filter((name, at) => named.indexOf(name) !== at), [], 'these are named twice');
});

test('each link and each anchor of the built site leads somewhere', { skip }, () => {
  const { dead, pages } = deadLinks(FOLDER);
  assert.deepEqual(dead, []);
  assert.ok(pages > 100, `only ${pages} pages were found`);
});

test('a dead link is found, whether it names a file, a heading, or a path outside of the site', () => {
  const folder = join(root, 'target/book-dead');
  mkdirSync(folder, { recursive: true });
  const [links, shown] = ['b.html#here c.html b.html#there ../x / https://example.com', '&lt;a href="shown.html">'];
  writeFileSync(join(folder, 'a.html'), `${links.split(' ').map((link) => `<a class="x" href="${link}">x</a>`).join('')}<pre>${shown}</pre>`);
  writeFileSync(join(folder, 'b.html'), '<h2 id="here">Here</h2>');
  const { dead } = deadLinks(folder);
  rmSync(folder, { recursive: true });
  assert.deepEqual(dead.map((line) => line.split(': ')[1]), ['c.html', 'b.html#there', '../x', '/']);
});

test('links to pages outside docs lead to their place in the book, and links to source files become text', () => {
  const pages = new Set(['docs/guide/a.md', 'docs/b.md', 'ARCHITECTURE.md', 'packages/render/README.md']);
  const at = (text) => linked(text, 'docs/guide/a.md', pages);
  assert.equal(at('[x](../../ARCHITECTURE.md#words)'), '[x](../ARCHITECTURE.md#words)');
  assert.equal(at('[x](../../packages/render/README.md)'), '[x](../packages/render/index.md)');
  assert.equal(at('[`a[b]`](../../crates/x.rs)'), '`a[b]`');
  assert.equal(at('![p](../hostler.svg) [h](#h) [w](https://example.com/a)'), '![p](../hostler.svg) [h](#h) [w](https://example.com/a)');
  assert.equal(at('```md\n[x](../../LICENSE)\n```'), '```md\n[x](../../LICENSE)\n```');
  assert.equal(linked('[a](docs/guide/a.md)', 'ARCHITECTURE.md', pages), '[a](guide/a.md)');
  assert.equal(placeOf('docs/guide/a.md'), 'guide/a.md');
});

test('the pages load nothing from other hosts, and axe-core finds nothing in their text, light and dark, wide and narrow', { skip }, async () => {
  const browser = await openBrowser();
  const faults = [];
  try {
    for (const page of ['index', 'guide/quick-start', 'readers/express-pm2', 'benchmarks', 'concepts/lanes', 'guide/router']) {
      for (const [colorScheme, width] of [['light', 1280], ['dark', 390]]) faults.push(...(await look(browser, { page, colorScheme, width })));
    }
  } finally {
    await browser.close();
  }
  assert.deepEqual(faults, []);
});

async function look(browser, { page: name, colorScheme, width }) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, reducedMotion: 'reduce' });
  try {
    const faults = [];
    const page = await context.newPage();
    page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || faults.push(`${name} asks for ${request.url()}`));
    page.on('pageerror', (error) => faults.push(`${name}: ${error.message}`));
    await page.goto(pathToFileURL(join(FOLDER, `${name}.html`)).href, { waitUntil: 'load' });
    const wide = await page.evaluate('document.documentElement.scrollWidth > window.innerWidth');
    if (wide) faults.push(`${name} ${colorScheme} ${width}: wider than the window`);
    await page.evaluate(AXE);
    // The bar and the menu are mdBook's own. Browsers make a region that scrolls focusable by themselves, and axe-core does not see it.
    const rules = { 'scrollable-region-focusable': { enabled: false } };
    const violations = await page.evaluate(async (rules) => (await globalThis.axe.run('main', { resultTypes: ['violations'], rules })).violations, rules);
    for (const { id, nodes } of violations) faults.push(`${name} ${colorScheme} ${width}: ${id} (${nodes.length}): ${nodes[0].html.slice(0, 160)}`);
    return faults;
  } finally {
    await context.close();
  }
}

test('the built site names no script, style or picture of another host', { skip }, () => {
  const pages = filesOf(FOLDER).filter((name) => name.endsWith('.html'));
  const outside = pages.flatMap((name) => (readFileSync(join(FOLDER, name), 'utf8').match(/<(?:script|img|link|iframe)[^<>]*\s(?:src|href)="(?:https?:)?\/\/[^"]*"/g) ?? []).map((found) => `${name}: ${found}`));
  assert.deepEqual(outside, []);
});
