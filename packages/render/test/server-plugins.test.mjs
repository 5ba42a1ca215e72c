// Plugins: Hypernova's events, in its order, with its contexts, and the effects of failing plugins.
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { serve } from './support/renderer.mjs';

const boom = () => {
  throw new Error('boom');
};
const components = { ok: ({ x }) => `ok ${x}`, boom };
const batch = { a: { name: 'ok', data: { x: 1 }, metadata: { m: 1 } }, b: { name: 'boom', data: {} } };
const EVENTS = ['batchStart', 'jobStart', 'beforeRender', 'afterRender', 'jobEnd', 'batchEnd', 'onError'];

/** A plugin that records each event. `more` adds to its methods. */
function witness(more = {}) {
  const seen = [];
  const plugin = Object.fromEntries(
    EVENTS.map((event) => [
      event,
      function tell(context, error) {
        assert.equal(this, plugin);
        seen.push({ event, context, error });
        return more[event]?.(context, error);
      },
    ]),
  );
  return { plugin, seen, names: () => seen.map(({ event, context }) => (context.token ? `${event} ${context.token}` : event)) };
}

test('events come in the order of Hypernova', async (t) => {
  const { plugin, names } = witness();
  const { results } = await serve(t, { components, plugins: [plugin] });
  await results(batch);
  const a = ['jobStart a', 'beforeRender a', 'afterRender a', 'jobEnd a'];
  assert.deepEqual(names(), ['batchStart', ...a, 'jobStart b', 'beforeRender b', 'onError b', 'batchEnd']);
});

test('contexts have the keys of Hypernova', async (t) => {
  const { plugin, seen } = witness();
  const { results } = await serve(t, { components, plugins: [plugin] });
  await results(batch);
  const [start, jobStart, , , jobEnd] = seen;
  assert.deepEqual(Object.keys(start.context).sort(), ['batchMeta', 'data', 'jobs', 'request', 'response', 'tokens']);
  assert.deepEqual([start.context.tokens, start.context.jobs], [['a', 'b'], batch]);
  const expected = ['batchMeta', 'data', 'duration', 'html', 'metadata', 'name', 'props', 'request', 'response', 'returnMeta', 'statusCode', 'token'];
  assert.deepEqual(Object.keys(jobStart.context).sort(), [...expected, 'id'].sort());
  assert.deepEqual([jobStart.context.html, jobStart.context.duration], [null, null]);
  assert.deepEqual([jobEnd.context.html, jobEnd.context.props, jobEnd.context.metadata, jobEnd.context.statusCode], ['ok 1', { x: 1 }, { m: 1 }, 200]);
  assert.ok(jobEnd.context.duration > 0);
  for (const { context } of seen) assert.ok(context.request instanceof IncomingMessage && context.response instanceof ServerResponse);
  const failed = seen.find(({ event }) => event === 'onError');
  assert.deepEqual([failed.error.message, failed.context.error, failed.context.statusCode], ['boom', failed.error, 500]);
});

test('data is one map per plugin and batch, batchMeta one object per batch', async (t) => {
  const one = witness({ batchStart: ({ data, batchMeta }) => data.set('mine', 1) && Object.assign(batchMeta, { shared: true }) });
  const two = witness();
  const { results } = await serve(t, { components, plugins: [one.plugin, two.plugin] });
  await results(batch);
  assert.ok(one.seen.every(({ context }) => context.data.get('mine') === 1));
  assert.ok(two.seen.every(({ context }) => context.data.size === 0 && context.batchMeta.shared));
  const before = one.seen[0].context;
  await results(batch);
  const after = one.seen.at(-1).context;
  assert.notEqual(after.data, before.data);
  assert.notEqual(after.batchMeta, before.batchMeta);
});

test('a context is a copy: html cannot be replaced there, returnMeta can be added to', async (t) => {
  const afterRender = (context) => {
    context.html = 'replaced';
    context.statusCode = 418;
    context.returnMeta.seen = context.html;
  };
  const { results } = await serve(t, { components, plugins: [{ afterRender }] });
  const { a } = await results(batch);
  assert.deepEqual([a.html, a.statusCode, a.meta], ['ok 1', 200, { seen: 'replaced' }]);
});

test('a plugin may take a job out of the batch at its start', async (t) => {
  const { results } = await serve(t, { components, plugins: [{ batchStart: ({ jobs }) => Reflect.deleteProperty(jobs, 'b') }] });
  const { a, b } = await results(batch);
  assert.equal(a.html, 'ok 1');
  assert.deepEqual(b, { name: 'boom', html: null, meta: {}, duration: null, statusCode: 200, success: false, error: null });
});

test('a batch waits for asynchronous events', async (t) => {
  const order = [];
  const slowly = (event) => async () => {
    await new Promise(setImmediate);
    order.push(event);
  };
  const plugins = [Object.fromEntries(['batchStart', 'jobStart', 'jobEnd', 'batchEnd'].map((event) => [event, slowly(event)]))];
  const { results } = await serve(t, { components: { ok: () => order.push('render') }, plugins });
  await results({ a: { name: 'ok' } });
  assert.deepEqual(order, ['batchStart', 'jobStart', 'render', 'jobEnd', 'batchEnd']);
});

test('an event that takes longer than 300 ms is abandoned and logged', async (t) => {
  const { results, lines } = await serve(t, { components, plugins: [{ jobStart: () => new Promise(() => {}) }] });
  const { a } = await results({ a: batch.a });
  assert.equal(a.html, 'ok 1');
  assert.deepEqual(lines, ['info: Lifecycle method jobStart took too long.']);
});

for (const event of ['jobStart', 'beforeRender']) {
  test(`a job fails if ${event} throws, without having been rendered`, async (t) => {
    const { plugin, names } = witness({ [event]: ({ token }) => token === 'a' && boom() });
    const { results } = await serve(t, { components: { ...components, boom: () => 'b' }, plugins: [plugin] });
    const { a, b } = await results(batch);
    assert.deepEqual([a.html, a.statusCode, a.success, a.duration, a.error.message], [null, 500, false, null, 'boom']);
    assert.equal(b.html, 'b');
    assert.ok(names().includes('onError a') && !names().includes('afterRender a'));
  });
}

for (const event of ['afterRender', 'jobEnd']) {
  test(`a job keeps its html, and gets an error, if ${event} throws`, async (t) => {
    const { results } = await serve(t, { components, plugins: [{ [event]: boom }] });
    const { a } = await results({ a: batch.a });
    assert.deepEqual([a.html, a.statusCode, a.success, a.error.message], ['ok 1', 500, true, 'boom']);
  });
}

for (const [event, html] of [['batchStart', null], ['batchEnd', 'ok 1']]) {
  test(`the batch fails with 500 and the error if ${event} throws`, async (t) => {
    for (const failure of [boom, () => Promise.reject(new Error('boom'))]) {
      const { plugin, seen } = witness({ [event]: failure });
      const { post } = await serve(t, { components, plugins: [plugin] });
      const answer = await post({ a: batch.a });
      const { success, error, results } = await answer.json();
      assert.equal(answer.status, 500);
      assert.deepEqual([success, error.name, error.message, error.stack[0]], [false, 'Error', 'boom', 'Error: boom']);
      assert.equal(results.a.html, html);
      const told = seen.find((each) => each.event === 'onError');
      assert.deepEqual([told.context.tokens, told.error.message], [['a'], 'boom']);
    }
  });
}

test('an onError that throws is logged, and the next plugin still gets the error', async (t) => {
  const { plugin, names } = witness();
  const { results, lines } = await serve(t, { components, plugins: [{ onError: boom }, plugin] });
  const { a, b } = await results(batch);
  assert.deepEqual([a.html, b.error.message], ['ok 1', 'boom']);
  assert.match(lines.join('\n'), /^error: a plugin's onError threw: Error: boom/);
  assert.ok(names().includes('onError b'));
});

test('plugins are notified of a refused body', async (t) => {
  const { plugin, seen } = witness();
  const { post } = await serve(t, { components, plugins: [plugin] });
  assert.equal((await post('{bad')).status, 400);
  assert.deepEqual(seen.map(({ event, error }) => [event, error.status]), [['onError', 400]]);
});
