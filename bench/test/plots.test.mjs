// docs/benchmarks.md and its plots: they are what bench/results gives, and a worse result changes them. Knows no figure.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { draw } from '../plots/svg.mjs';
import { figures } from '../plots/figures.mjs';
import { DOCS, pages, readResults } from '../render.mjs';

const results = readResults(fileURLToPath(new URL('..', import.meta.url)));

test('docs/benchmarks is what bench/results gives; if not: node bench/render.mjs', () => {
  const fresh = pages(results);
  for (const [name, text] of fresh) {
    const file = join(DOCS, name);
    assert.ok(existsSync(file), `${name} is missing`);
    assert.equal(readFileSync(file, 'utf8'), text, `${name} is stale`);
  }
  assert.deepEqual(readdirSync(join(DOCS, 'benchmarks')).map((name) => `benchmarks/${name}`).filter((name) => !fresh.has(name)), []);
});

test('every part of the results has a plot with a bar of Hostler in each panel', () => {
  for (const result of results) {
    const { panels } = figures[result.scenario](result);
    assert.ok(panels.length > 0, result.scenario);
    for (const { title, bars } of panels) assert.ok(bars.some(({ kind }) => kind === 'own'), `${result.scenario}: ${title}`);
  }
});

test('a missed target is the first thing that the page says', () => {
  const slow = structuredClone(results.filter(({ scenario }) => scenario === 'deploys'));
  const page = () => pages(slow).get('benchmarks.md');
  assert.match(page(), /Every target that was decided is met/);
  slow[0].rows.find(({ peer }) => peer === 'hostler').failed = 7;
  assert.match(page(), /\*\*1 are not met\*\*[^]*## What is not met\n\n\* \[Deploys\]\(#deploys\): 1 of 1\.[^]*7 failed, wanted 0[^]*## Deploys/);
});

test('the page says when and where its figures were measured', () => {
  const two = structuredClone(results.slice(0, 2));
  Object.assign(two[0], { date: '2026-11-28T23:00:00.000Z', commit: 'a'.repeat(40), dirty: false, machine: { cores: 2, cpu: 'one' } });
  Object.assign(two[1], { date: '2026-11-29T01:00:00.000Z', commit: 'b'.repeat(40), dirty: true, machine: { cores: 4, cpu: 'two' } });
  assert.match(pages(two).get('benchmarks.md'), /^Measured on 2026-11-28, 2026-11-29 at commits .*`a{12}`.*, on .*4 cores of two/m);
  assert.match(pages(two).get('benchmarks.md'), /`b{12}` with uncommitted changes/);
});

test('a bar is as long as its value, a time that never came fills the line, and words are escaped', () => {
  const bars = [{ label: 'a < b', median: 10, min: 5, max: 20, kind: 'own' }, { label: 'c', median: Infinity, min: 3, max: Infinity }, { label: 'd', median: 20 }];
  const text = draw({ title: 'T & U', better: 'Shorter', panels: [{ unit: 'ms', bars }] });
  assert.deepEqual([...text.matchAll(/class="bar[^>]* width="([\d.]+)"/g)].map(([, width]) => Number(width)), [260, 520, 520]);
  assert.match(text, /a &lt; b/);
  assert.match(text, /T &amp; U/);
  assert.match(text, />never</);
});
