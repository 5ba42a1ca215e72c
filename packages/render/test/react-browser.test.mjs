// React 16 to 19 in Chromium: hydrates markup without an error, fills fallbacks, and keeps ids apart.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { VERSIONS } from './react/install.mjs';
import { browser, bundle, serverWith } from './react/kit.mjs';

const HOSTILE = '</script > --> <!--<script> & &amp; \u2028 "\'';
const entryFor = (version) => (version < 18 ? 'browser-legacy.mjs' : 'browser.mjs');

const servers = {};
const scripts = {};
let chromium;
before(async () => {
  for (const version of VERSIONS) {
    servers[version] = await serverWith(version);
    scripts[version] = (await bundle(entryFor(version), version)).text;
  }
  chromium = await browser();
});
after(() => chromium?.close());

/** The markup of the client hypernova of PyPI for a job that has failed. */
const ofPyPI = (name, data) => `
        <div data-hypernova-key="${name}"></div>
        <script type="application/json" data-hypernova-key="${name}">
        <!--${data}--></script>
    `;

const empty = (key, id, data) =>
  `<div data-hypernova-key="${key}" data-hypernova-id="${id}"></div>\n<script type="application/json" data-hypernova-key="${key}" data-hypernova-id="${id}"><!--${data}--></script>`;

/** Clicks the last island's button until it counts. A click before React has started is lost. */
async function assertInteractive(page, islands) {
  await page.waitForFunction(() => {
    const button = [...document.querySelectorAll('button')].at(-1);
    button?.click();
    return button && !button.textContent.includes('clicked 0');
  });
  const texts = await page.locator('button').allTextContents();
  assert.equal(texts.length, islands);
  assert.match(texts.at(-1), /^clicked [1-9]/);
  assert.ok(texts.slice(0, -1).every((text) => text === 'clicked 0 times'), texts.join());
}

for (const version of VERSIONS) {
  describe(`React ${version}`, () => {
    test('three islands of one component hydrate without a warning, and count clicks', async () => {
      const body = [HOSTILE, 'two', 'three'].map((label) => servers[version].counter({ label })).join('\n');
      const { page, complaints } = await chromium.open(body, scripts[version]);
      await assertInteractive(page, 3);
      assert.equal(await page.evaluate(() => window.first.every((button) => button.isConnected)), true, 'the nodes of the server are kept');
      assert.equal(await page.locator('label').first().textContent(), HOSTILE);
      assert.equal(await page.locator('input').first().inputValue(), HOSTILE);
      if (version >= 18) {
        const ids = await page.locator('input').evaluateAll((inputs) => inputs.map(({ id }) => id));
        assert.equal(new Set(ids).size, 3, ids.join());
      }
      assert.deepEqual(complaints, []);
      await page.close();
    });

    test('a fallback is rendered in the browser, from a client that strips the name and from one that does not', async () => {
      const body = ['Counterjs', 'Counter.js'].map((key) => empty(key, `id-${key}`, '{"label":"from the &amp; fallback"}')).join('\n');
      const { page, complaints } = await chromium.open(body, scripts[version]);
      await assertInteractive(page, 2);
      assert.deepEqual(await page.locator('label').allTextContents(), ['from the & fallback', 'from the & fallback']);
      assert.deepEqual(complaints, []);
      await page.close();
    });

    test('a job that failed is rendered in the browser, from a client that writes no id', async () => {
      const body = ['one', 'two'].map((label) => ofPyPI('Counter.js', `{"label": "${label}"}`)).join('\n');
      const { page, complaints } = await chromium.open(body, scripts[version]);
      await assertInteractive(page, 2);
      assert.deepEqual(await page.locator('label').allTextContents(), ['one', 'two']);
      assert.deepEqual(complaints, []);
      await page.close();
    });

    test('an island with broken data does not affect the others', async () => {
      const body = `${empty('Counterjs', 'broken', '{"label":')}${servers[version].counter({ label: 'whole' })}`;
      const { page, complaints } = await chromium.open(body, scripts[version]);
      await assertInteractive(page, 1);
      assert.equal(complaints.length, 1);
      assert.match(complaints[0], /SyntaxError/);
      await page.close();
    });

    test('the script may stand in the head', async () => {
      const { page, complaints } = await chromium.open(servers[version].counter({ label: 'body' }), scripts[version], { head: true });
      await assertInteractive(page, 1);
      assert.deepEqual(complaints, []);
      await page.close();
    });

    test('the bundle for the browser holds nothing of the server', async () => {
      const { inputs } = await bundle(entryFor(version), version);
      assert.deepEqual(inputs.filter((path) => /react-dom.*server|^node:/.test(path)), []);
    });
  });
}

for (const version of [18, 19]) {
  test(`React ${version}: a part that suspended hydrates without a warning`, async () => {
    const body = (await Promise.all([1, 2].map((n) => servers[version].patient({ text: `part ${n}`, ms: 1 })))).join('\n');
    const { page, complaints } = await chromium.open(body, scripts[version]);
    await assertInteractive(page, 2);
    assert.deepEqual(await page.locator('p').allTextContents(), ['part 1', 'part 2']);
    assert.deepEqual(complaints, []);
    await page.close();
  });
}

test("Hypernova's own browser code hydrates our markup", async () => {
  const { text } = await bundle('browser-hypernova.mjs', 16, 'browser', { 'react-dom/server': 'react-dom/server.browser.js' });
  const body = [HOSTILE, 'two'].map((label) => servers[16].counter({ label })).join('\n');
  const { page, complaints } = await chromium.open(body, text);
  await assertInteractive(page, 2);
  assert.deepEqual(await page.evaluate(() => window.loaded), [{ label: HOSTILE }, { label: 'two' }]);
  assert.equal(await page.evaluate(() => window.first.every((button) => button.isConnected)), true);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("Hypernova's own browser code renders a fallback of Hostler's", async () => {
  const { text } = await bundle('browser-hypernova.mjs', 16, 'browser', { 'react-dom/server': 'react-dom/server.browser.js' });
  const { page } = await chromium.open(empty('Counterjs', 'the-id', '{"label":"\\u003c/script &gt; &amp;amp;"}'), text);
  await assertInteractive(page, 1);
  assert.equal(await page.locator('label').textContent(), '</script > &amp;');
  await page.close();
});

test("our browser code reads the markup of Hypernova's server and of the fallbacks of its clients", async () => {
  const { text } = await bundle('browser-load.mjs', 19);
  const ofServer = '{"name":"Ada </script&gt; --&gt; &amp; \\"q\\" <b&gt;"}';
  const ofPyramid = '<div data-hypernova-key="Boomjs" data-hypernova-id="2"></div>\n<script\n  type="application/json"\n  data-hypernova-key="Boomjs"\n  data-hypernova-id="2"\n><!--{"a": 1}--></script>';
  const { page, complaints } = await chromium.open(`${empty('Boomjs', '1', ofServer)}${ofPyramid}${empty('Boom.js', '3', '{"x":"--&gt;"}')}${empty('Other', '4', '1')}`, text);
  assert.deepEqual(
    await page.evaluate(() => window.hypernova.load('Boom.js').map(({ data, id }) => [id, data])),
    [['1', { name: 'Ada </script> --> & "q" <b>' }], ['2', { a: 1 }], ['3', { x: '-->' }]],
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test('an island without an id has the data of the script behind it, and no other', async () => {
  const { text } = await bundle('browser-load.mjs', 19);
  const alone = '<div data-hypernova-key="Boom.js"></div><p></p>';
  const { page, complaints } = await chromium.open(`${ofPyPI('Boom.js', '{"a": 1}')}${ofPyPI('Boom.js', 'null')}${alone}${ofPyPI('Other.js', '2')}`, text);
  assert.deepEqual(
    await page.evaluate(() => window.hypernova.load('Boom.js').map(({ data, id }) => [id, data])),
    [['', { a: 1 }], ['', null], ['', null]],
  );
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a script is found by any attributes that toScript can write', async () => {
  const { text } = await bundle('browser-load.mjs', 19);
  const { page } = await chromium.open('<main></main>', text);
  const found = await page.evaluate(() => {
    const { fromScript, toScript } = window.hypernova;
    const attributes = { 'We ird!': 'a"b&c\\d\ne' };
    document.querySelector('main').innerHTML = toScript(attributes, { x: 1 });
    return [fromScript(attributes), fromScript({ weird: 'other' })];
  });
  assert.deepEqual(found, [{ x: 1 }, null]);
  await page.close();
});
