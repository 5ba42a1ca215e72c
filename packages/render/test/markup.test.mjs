// Hypernova's markup and encoding, byte for byte, and data that tries to break out of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import hypernova, { DATA_ID, DATA_KEY, decode, encode, keyOf, newId, serialize, toScript } from '@hostler/render';
import { build } from 'esbuild';

const HOSTILE = ['</script>', '</script >', '</script/', '-->', '--!>', '<!--<script>', ']]>', '\u2028\u2029', '\ud800 alone', '&gt; &amp;gt; &lt;', '\0', '"\'`\\', '</SCRIPT\n>'];

test('a component is a div and a script with one line break between them', () => {
  assert.equal(
    serialize('a/b c.js', '<p>hi</p>', { x: 1 }, 'id-1'),
    '<div data-hypernova-key="abcjs" data-hypernova-id="id-1"><p>hi</p></div>\n' +
      '<script type="application/json" data-hypernova-key="abcjs" data-hypernova-id="id-1"><!--{"x":1}--></script>',
  );
});

test('attributes of a script are lower-cased, stripped and escaped', () => {
  assert.equal(
    toScript({ 'hypernova-key': 'K', 'We ird!': 'a"b&c' }, { x: 1 }),
    '<script type="application/json" data-hypernova-key="K" data-weird="a&quot;b&amp;c"><!--{"x":1}--></script>',
  );
});

test('a key is the name without what is no letter, digit or underscore', () => {
  assert.equal(keyOf('Some/Home_Page-2.ü.js'), 'SomeHome_Page2js');
});

test('an id that is not given is a fresh UUIDv4', () => {
  const [one, two] = [serialize('A', '', {}), serialize('A', '', {})].map((html) => /hypernova-id="([^"]*)"/.exec(html)[1]);
  assert.match(one, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(one, two);
});

test('an id is a UUIDv4 where there is no crypto as well', (t) => {
  const crypto = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true });
  t.after(() => Object.defineProperty(globalThis, 'crypto', crypto));
  assert.match(newId(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('nothing in the data can end the comment or the script', () => {
  for (const text of HOSTILE) {
    const encoded = encode({ text, [text]: [text] });
    assert.doesNotMatch(encoded, /[<>]/, text);
    assert.deepEqual(decode(encoded), { text, [text]: [text] });
  }
});

test('what Hypernova has encoded is read too', () => {
  assert.deepEqual(decode('{"name":"Ada </script&gt; --&gt; &amp; \\"q\\" <b&gt;"}'), { name: 'Ada </script> --> & "q" <b>' });
});

test('the encoding equals Hypernova\'s, except for the escape of <', () => {
  assert.equal(encode({ name: 'Ada </script> & "q"' }), '{"name":"Ada \\u003c/script&gt; &amp; \\"q\\""}');
});

test('data that is no JSON value is refused with a reason', () => {
  for (const [data, word] of [[undefined, 'undefined'], [() => 1, 'function'], [Symbol('s'), 'symbol']]) {
    assert.throws(() => serialize('A', '', data), { name: 'TypeError', message: new RegExp(`must be a JSON value.*${word}`) });
  }
});

test('every other JSON value is data', () => {
  for (const data of [null, 0, '', false, [], 'text', [[]]]) assert.deepEqual(decode(encode(data)), data);
});

test('hypernova calls the server half without a window, and the client half with one', (t) => {
  const halves = { server: () => 'server', client: () => 'client' };
  assert.equal(hypernova(halves), 'server');
  globalThis.window = {};
  t.after(() => delete globalThis.window);
  assert.equal(hypernova(halves), 'client');
});

test('require returns the function with all properties, as npm hypernova does, and import has the same names', () => {
  const required = createRequire(import.meta.url)('@hostler/render');
  assert.equal(required({ server: () => 1, client: () => 2 }), 1);
  assert.equal(required.serialize('A', '', 1, 'i'), serialize('A', '', 1, 'i'));
  assert.equal(required.default({ server: () => 1, client: () => 2 }), 1);
  assert.deepEqual([required.DATA_KEY, required.DATA_ID], [DATA_KEY, DATA_ID]);
  for (const name of ['serialize', 'toScript', 'fromScript', 'load']) assert.equal(typeof hypernova[name], 'function');
});

test('CommonJS for the browser, as Jest runs it with jsdom, gets CommonJS', () => {
  const script = `for (const name of ['react', 'react-legacy'])
    console.log(typeof require('@hostler/render/' + name).hydrate, /\\/dist\\/[^/]*-browser\\.js$/.test(require.resolve('@hostler/render/' + name)))`;
  const said = execFileSync(process.execPath, ['--conditions', 'browser', '-e', script], { cwd: import.meta.dirname, encoding: 'utf8' });
  assert.equal(said, 'function true\nfunction true\n');
});

test('a bundle contains only its imports', async () => {
  const contents = "import { toScript } from '@hostler/render'; console.log(toScript({}, 1));";
  const stdin = { contents, resolveDir: import.meta.dirname };
  const { outputFiles } = await build({ stdin, bundle: true, write: false, format: 'esm', platform: 'browser' });
  assert.match(outputFiles[0].text, /application\/json/);
  assert.doesNotMatch(outputFiles[0].text, /querySelector|randomUUID|window/);
});
