// The lists of crawlers: they are what the script makes of the package, and each pattern is understood or left out.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FOLDER, literals, makeLists } from './crawlers.mjs';

test('the lists of crawlers in the engine are those that the script makes', () => {
  for (const [name, text] of Object.entries(makeLists().files)) {
    assert.equal(readFileSync(join(FOLDER, name), 'utf8'), text, `${name} is stale: node scripts/crawlers.mjs`);
  }
});

test('a list has each name once, in order, and none is a short word', () => {
  for (const [file, text] of Object.entries(makeLists().files).filter(([name]) => name.endsWith('.txt'))) {
    const names = text.split('\n').filter((line) => line && !line.startsWith('#')).map((line) => line.replace('^', '').toLowerCase());
    assert.ok(names.length > 300, `${file} has ${names.length}`);
    assert.deepEqual(names, [...new Set(names)].sort(), file);
    assert.deepEqual(names.filter((name) => name.length < 3 || name !== name.trim()), [], file);
  }
});

test('simple patterns become names, and others are left out', () => {
  for (const [pattern, names] of [
    ['Scoop\\.it\\/', ['Scoop.it/']],
    ['^Apache-HttpClient', ['^Apache-HttpClient']],
    ['(^| )PTST\\/', ['PTST/']],
    ['[cC]laude[bB]ot', ['claudebot']],
    ['S[eE][mM]rushBot', ['SemrushBot']],
    ['Ahrefs(Bot|SiteAudit)', ['AhrefsBot', 'AhrefsSiteAudit']],
    ['Netumo|netumo', ['Netumo', 'netumo']],
    ['Owler \\(ows\\.eu', ['Owler (ows.eu']],
    ['Pulsepoint ', ['Pulsepoint']],
    ['SSL Labs$', undefined],
    ['AdsBot-Google([^-]|$)', undefined],
    ['Current[\\s\\S]*RSS Reader', undefined],
    ['BlogTraffic\\/\\d\\.\\d+ Feed-Fetcher', undefined],
    ['a.b', undefined],
  ]) {
    assert.deepEqual(literals(pattern), names, pattern);
  }
});

test('few patterns are more than a name', () => {
  const complex = makeLists().leftOut.filter(({ reason }) => reason === 'is more than a name');
  assert.ok(complex.length < 10, complex.map(({ pattern }) => pattern).join('\n'));
});
