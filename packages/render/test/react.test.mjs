// React 16 to 19 on the server: the markup, the ids of useId, waiting for Suspense and its time limit.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { VERSIONS } from './react/install.mjs';
import { serverWith } from './react/kit.mjs';

const servers = {};
before(async () => {
  for (const version of VERSIONS) servers[version] = await serverWith(version);
});

for (const version of VERSIONS) {
  describe(`React ${version}`, () => {
    test('a component is rendered into its markup', () => {
      const html = servers[version].counter({ label: '<b>&' }, { id: 'the-id' });
      assert.match(html, /^<div data-hypernova-key="Counterjs" data-hypernova-id="the-id"><section.*&lt;b&gt;&amp;<\/label>.*<\/section><\/div>\n<script /);
      assert.ok(html.endsWith('<!--{"label":"\\u003cb&gt;&amp;"}--></script>'), html);
    });

    test('without a context, as npm hypernova calls it, each call has an id of its own', () => {
      const id = () => /hypernova-id="([^"]+)"/.exec(servers[version].counter({ label: '' }))[1];
      assert.notEqual(id(), id());
    });

    test('renderStatic sends only static markup', () => {
      assert.match(servers[version].plain({ label: 'hi' }), /^<section><label[^>]*>hi<\/label>.*clicked 0 times<\/button><\/section>$/);
    });

    test('a wrapper of a component gets its name and id', () => {
      assert.match(servers[version].framed({ label: '' }, { id: 'i' }), /<div [^>]*><main title="Framed i"[^>]*><section/);
    });

    test('a component that throws makes the render function throw', () => {
      assert.throws(() => servers[version].throws({}), /always throws/);
    });

    test('data that is no JSON is refused', () => {
      assert.throws(() => servers[version].counter({ label: '', big: 1n }), TypeError);
    });
  });
}

for (const version of [16, 17]) {
  test(`React ${version} cannot render asynchronously, and reports it`, async () => {
    await assert.rejects(servers[version].patient({ text: 'x', ms: 1 }), /needs React 18/);
  });
}

for (const version of [18, 19]) {
  describe(`React ${version}`, () => {
    test('the id is the prefix of every id of useId', () => {
      assert.match(servers[version].counter({ label: '' }, { id: 'PRE' }), /<input id=".PRE[^"]*"/);
    });

    test('the render waits for suspended parts', async () => {
      const html = await servers[version].patient({ text: `soon ${version}`, ms: 20 }, { id: 'PRE' });
      assert.match(html, new RegExp(`<p id=".PRE[^"]*">soon ${version}</p>`));
      assert.doesNotMatch(html, /<i>wait|<template/);
    });

    test('a late part is in its place without a script', async () => {
      const html = await servers[version].patient({ text: `long ${version}`, ms: 5, times: 10_000 });
      assert.equal(html.split(`long ${version}`).length - 1, 10_000 + 3); // its text, the label and the field beside it, and the data
      assert.doesNotMatch(html, /<i>wait|<template/);
      assert.equal(html.match(/<script/g).length, 1);
    });

    test('the synchronous form has the fallback of a suspended part', () => {
      assert.match(servers[version].impatient({ text: `never ${version}`, never: true }), /<i>wait<\/i>/);
    });

    test('a part that throws inside Suspense is left to the browser, and only the asynchronous form reports it', async () => {
      const { tornAtOnce, tornLater, reported } = servers[version];
      for (const html of [tornAtOnce({}), await tornLater({})]) assert.match(html, /<i>wait<\/i>/);
      assert.deepEqual(reported, ['Later: this component always throws']);
    });

    test('the end of the job ends the wait: the frame is sent, and the browser renders the missing parts', async () => {
      const { watched, seen } = servers[version];
      const job = new AbortController();
      const html = watched({ text: `late ${version}`, never: true }, { id: 'PRE', signal: job.signal });
      setImmediate(() => job.abort(new Error('the job has ended')));
      assert.match(await html, /<i>wait<\/i>.*clicked/);
      assert.deepEqual(seen, [['the job has ended', { name: 'Patient', id: 'PRE' }]]);
    });

    test('a time limit ends the wait too', async () => {
      const { hurried } = servers[version];
      assert.match(await hurried({ text: `very late ${version}`, never: true }), /<i>wait<\/i>.*clicked/);
    });

    test('a time limit that is longer than any timer of Node is none', async () => {
      const html = await servers[version].unhurried({ text: `at leisure ${version}`, ms: 5 });
      assert.doesNotMatch(html, /<i>wait/);
    });

    test('a job that ends without a frame fails', async () => {
      const job = new AbortController();
      const html = servers[version].frameless({ text: `late as well ${version}`, never: true }, { signal: job.signal });
      setImmediate(() => job.abort(new Error('the job has ended')));
      await assert.rejects(html, /the job has ended/);
    });

    test('a job that has already ended is not started', async () => {
      await assert.rejects(servers[version].patient({}, { signal: AbortSignal.abort(new Error('too late')) }), /too late/);
    });
  });
}
