// A client of npm hypernova gets the same responses from Hostler with @hostler/render. It also gets a page while no
// worker runs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { openBrowser } from '@hostler/testkit';
import { AWAY } from './cases.mjs';
import { runAll } from './run.mjs';
import { README_FILE, readme } from './table.mjs';

let results;
before(async () => {
  results = await runAll();
  if (!results.peers.python) console.warn(`\n!!! MISSING: pyramid-hypernova is not asked, for ${results.peers.why}`);
});

test('every answer equals npm hypernova\'s, except for intended differences', async (t) => {
  for (const { by, what, differs, alike, reference, ours } of results.rows) {
    await t.test(`${by}: ${what}`, () => {
      if (!differs) return assert.equal(ours, reference);
      assert.notEqual(ours, reference, 'it no longer differs: say so in cases.mjs');
      if (alike) assert.equal(alike(ours), reference);
    });
  }
  if (!results.peers.python) t.test('pyramid-hypernova', { skip: results.peers.why });
  assert.ok(results.rows.length > 55);
});

test('an invalid job fails, and the worker that crashes with Hypernova continues', () => {
  const deaths = results.rows.filter(({ answers, what }) => answers.reference.died && what.includes('null'));
  assert.equal(deaths.length, 2);
  for (const { answers } of deaths) {
    assert.equal(answers.reference.exit, 1);
    const { status, body, headers } = answers.ours;
    assert.deepEqual([status, body.success, headers['hostler-fallback']], [200, true, undefined], 'the worker itself has answered');
    const [job] = Object.values(body.results);
    assert.deepEqual([job.success, job.html, typeof job.error.message], [false, null, 'string']);
  }
});

test('a component that ends its process loses only the server-side render of its batch', () => {
  const { answers } = results.rows.find(({ what }) => what === 'ends the process');
  assert.equal(answers.reference.exit, 1);
  const { status, headers, body } = answers.ours;
  assert.deepEqual([status, headers['hostler-fallback'], body.results.a.statusCode], [200, 'worker_lost', 502]);
  assert.match(body.results.a.html, /^<div data-hypernova-key="Exits"/);
});

test('when no worker renders, each client shows Hostler\'s fallback markup, and reports the error', (t) => {
  const found = results.away.filter(({ from }) => from === 'edge');
  assert.equal(found.length, results.peers.python ? 2 : 1);
  for (const { by, html, errors, tokens } of found) {
    t.diagnostic(by);
    // hypernova-client reports the batch, pyramid-hypernova each of its two jobs.
    assert.deepEqual(errors.map(({ name }) => name), Array(by === 'hypernova-client' ? 1 : 2).fill('RuntimeError'));
    assert.match(errors[0].message, /^not rendered on the server: .* \((unreachable|queue_timeout)\)$/);
    for (const [index, key] of ['Boomjs', 'abcjs'].entries()) {
      const pattern = new RegExp(`^<div data-hypernova-key="${key}" data-hypernova-id="([^"]+)"></div>\n<script [^>]*data-hypernova-id="\\1"><!--[^<]*--></script>$`);
      assert.match(html[index], pattern);
      if (tokens) assert.equal(pattern.exec(html[index])[1], tokens[index]);
    }
  }
});

test("Hypernova's browser code reads the data of Hostler's fallback markup", async (t) => {
  const browser = await openBrowser();
  t.after(() => browser.close());
  const code = readFileSync(results.peers.require.resolve('hypernova'), 'utf8');
  for (const { by, from, html } of results.away) {
    const page = await browser.newPage();
    const errors = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await page.setContent(`<!doctype html><body>${html.join('')}</body>`);
    await page.addScriptTag({ content: `(function () { const module = { exports: {} }, exports = module.exports; ${code}; window.hypernova = module.exports; })()` });
    const read = await page.evaluate(load, Object.keys(AWAY));
    await page.close();
    if (from === 'edge') {
      assert.deepEqual(read, Object.values(AWAY).map((data) => [data]), by);
      assert.deepEqual(errors, []);
    } else if (by === 'hypernova-client') {
      assert.deepEqual(read, [[], []], 'it writes names as keys, and those are not found');
    } else {
      assert.deepEqual(read, ['SyntaxError', [AWAY['a/b c.js']]], '`</script >` in the data has ended the script');
    }
  }
});

test('the tables in README.md equal the results of this run', () => {
  assert.equal(readFileSync(README_FILE, 'utf8'), readme(results), 'node packages/render/conformance/report.mjs writes them');
});

/** Runs in the browser. Returns the data of each component's islands, or the error. */
function load(names) {
  return names.map((name) => {
    try {
      return globalThis.hypernova.load(name).map(({ data }) => data);
    } catch (error) {
      return error.name;
    }
  });
}
