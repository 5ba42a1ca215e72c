// The pages of the examples and of the admin listener in a browser, light and dark: axe-core finds no fault, and the page follows the colour scheme. Knows no app.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { freePort, openBrowser, startHostler } from '@hostler/testkit';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATHS = [
  '/', '/homes/', '/homes/?kind=Lighthouse', '/homes/homes/441', '/homes/nowhere', '/stays/', '/stays/6', '/stays/nowhere', '/islands/', '/islands/?broken=1', '/view',
  '/view/unknown', '/chat/', '/places/', '/nowhere',
];
/** The live page, and pages of the documentation: the list, one with tables and code, and the longest. */
const ADMIN_PATHS = ['/', '/docs/', '/docs/guide/live.md', '/docs/reference/config.md'];

let site;
let browser;

before(async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const options = {
    'pools.stays.env.API_URL': `http://${listen}/api`,
    'pools.islands-page.env.HYPERNOVA_URL': `http://${listen}/batch`,
    'pools.photos.env.FLICKR_URL': `http://${listen}/services/rest/`,
  };
  site = await startHostler({ file: 'examples/hostler.toml', listen, options });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

test('axe-core finds nothing on any page of the examples and of the admin listener, light and dark, wide and narrow', async () => {
  const faults = [];
  const visit = async (url, scheme, width) => {
    const { violations, background } = await look(url, scheme, width);
    for (const { id, nodes } of violations) faults.push(`${url} ${scheme} ${width}: ${id}: ${nodes[0].html.slice(0, 200)}`);
    const isDark = luminance(background) < 0.2;
    if (isDark !== (scheme === 'dark')) faults.push(`${url} ${scheme}: the background is ${background}`);
  };
  for (const url of [...PATHS.map((path) => site.url + path), ...ADMIN_PATHS.map((path) => site.admin + path)]) {
    await visit(url, 'light', 1280);
    await visit(url, 'dark', 390);
  }
  assert.deepEqual(faults, []);
});

async function look(url, colorScheme, width) {
  // The pages' policies forbid the script that axe-core is.
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true, reducedMotion: 'reduce' });
  try {
    const page = await context.newPage();
    await page.goto(url, { waitUntil: 'load' });
    await page.evaluate(AXE);
    return await page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(globalThis.document, { resultTypes: ['violations'] });
      return { violations, background: globalThis.getComputedStyle(globalThis.document.body).backgroundColor };
    });
  } finally {
    await context.close();
  }
}

/** From 0 for black to 1 for white, of a colour such as `rgb(18, 23, 22)`. */
function luminance(color) {
  const [red, green, blue] = color.match(/[\d.]+/g).map(Number);
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}
