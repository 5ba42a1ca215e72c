// Jobs: their results and errors. Whatever a client sends or a component throws does not affect other jobs.
import assert from 'node:assert/strict';
import { AsyncResource } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '@hostler/testkit';
import { createRenderer } from '@hostler/render/server';
import { JSON_TYPE, serve } from './support/renderer.mjs';

const NO_HTML =
  'HTML was not returned to Hypernova, this is most likely an error within your application. Check your logs for any uncaught errors and/or rejections.';
const FIELDS = ['name', 'html', 'meta', 'duration', 'statusCode', 'success', 'error'];
const ok = () => 'ok';

/** The results of one job for each component, all in one batch with a job that must not be affected. */
async function together(t, components, config = {}) {
  const { results } = await serve(t, { components: { ...components, ok }, ...config });
  const names = [...Object.keys(components), 'ok'];
  const found = await results(Object.fromEntries(names.map((name) => [name, { name, data: {} }])));
  assert.deepEqual(Object.keys(found), names);
  assert.deepEqual([found.ok.html, found.ok.error], ['ok', null]);
  return found;
}

/** The properties of every failed job. Clients read each of them without a check. */
function assertFailed(result, { statusCode = 500, ...error }) {
  assert.deepEqual(Object.keys(result), FIELDS);
  assert.deepEqual([result.html, result.success, result.statusCode, result.meta], [null, false, statusCode, {}]);
  assert.ok(Array.isArray(result.error.stack) && result.error.stack.every((line) => typeof line === 'string'));
  assert.deepEqual(result.error, { ...error, stack: result.error.stack });
}

test('a component that throws fails with the name, the message and the stack of the error', async (t) => {
  const thrown = () => {
    throw new TypeError('no such thing');
  };
  const { thrown: result } = await together(t, { thrown });
  assertFailed(result, { name: 'TypeError', message: 'no such thing' });
  assert.equal(result.error.stack[0], 'TypeError: no such thing');
  assert.match(result.error.stack[1], /^at thrown \(.*server-jobs\.test\.mjs:\d+:\d+\)$/);
  assert.ok(result.duration > 0);
});

test('an error may have a type, a name of its own, several lines, and come from another context', async (t) => {
  const custom = () => Promise.reject(Object.assign(new Error('x'), { type: 'mine', name: 'Custom' }));
  const several = () => Promise.reject(new Error('one\ntwo'));
  const foreign = () => Promise.reject(runInNewContext('new RangeError("from afar")'));
  const aborted = () => Promise.reject(AbortSignal.abort().reason);
  const bare = () => Promise.reject(Object.assign(new Error('no stack'), { stack: undefined }));
  const found = await together(t, { custom, several, foreign, aborted, bare });
  assertFailed(found.custom, { type: 'mine', name: 'Custom', message: 'x' });
  assertFailed(found.several, { name: 'Error', message: 'one\ntwo' });
  assert.equal(found.several.error.stack[0], 'Error: one\ntwo');
  assertFailed(found.foreign, { name: 'RangeError', message: 'from afar' });
  assertFailed(found.aborted, { name: 'AbortError', message: 'This operation was aborted' });
  assertFailed(found.bare, { name: 'Error', message: 'no stack' });
  assert.deepEqual(found.bare.error.stack, ['']);
});

test('an error whose message is no text keeps its message, its name and its stack', async (t) => {
  const circle = {};
  circle.circle = circle;
  const messages = { object: { a: 1 }, list: [1, 'two'], number: 7, nothing: null, circle };
  const throwing = Object.entries(messages).map(([name, message]) => [
    name,
    () => {
      throw Object.assign(new TypeError('x'), { message });
    },
  ]);
  const found = await together(t, Object.fromEntries(throwing));
  for (const [name, message] of Object.entries({ ...messages, circle: '[object Object]' })) {
    assertFailed(found[name], { name: 'TypeError', message });
    assert.match(found[name].error.stack[0], /^TypeError: /);
    assert.match(found[name].error.stack[1], /server-jobs\.test\.mjs/);
  }
});

test('a rejection with something that is no error has it as its message, as it is', async (t) => {
  const values = { text: 'nope', list: [1, 'two'], object: { code: 7 }, zero: 0, nothing: false };
  const found = await together(t, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, () => Promise.reject(value)])));
  for (const [name, value] of Object.entries(values)) {
    assertFailed(found[name], { type: 'Error', name: 'Error', message: value });
    assert.deepEqual(found[name].error.stack, ['']);
  }
});

test('an error that a component sets in its context is in its result, beside its html', async (t) => {
  const caught = (_props, context) => Object.assign(context, { error: new RangeError('caught') }) && 'something else';
  const both = (_props, context) => Promise.reject(Object.assign(context, { error: new RangeError('caught') }) && new TypeError('thrown'));
  const found = await together(t, { caught, both });
  const { html, statusCode, success, error } = found.caught;
  assert.deepEqual([html, statusCode, success, error.name, error.message], ['something else', 200, true, 'RangeError', 'caught']);
  assert.match(error.stack[1], /server-jobs\.test\.mjs/);
  assertFailed(found.both, { name: 'TypeError', message: 'thrown' });
});

test('any thrown value fails the job with an error that names it', async (t) => {
  const circle = {};
  circle.circle = circle;
  const trap = () => {
    throw new Error('trapped');
  };
  const traps = new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap, getOwnPropertyDescriptor: trap });
  const getters = Object.defineProperties({}, { message: { get: trap }, stack: { get: trap }, toJSON: { get: trap } });
  const values = { null: null, undefined: undefined, symbol: Symbol('s'), bigint: 1n, function: ok, frozen: Object.freeze({ a: 1 }), circle, traps, getters };
  const throwing = Object.entries(values).map(([name, value]) => [
    name,
    () => {
      throw value;
    },
  ]);
  const found = await together(t, Object.fromEntries(throwing));
  const unseen = 'something was thrown that cannot be shown';
  const messages = { null: 'null', undefined: 'undefined', symbol: 'Symbol(s)', bigint: unseen, function: String(ok), frozen: { a: 1 } };
  for (const name of Object.keys(values)) assertFailed(found[name], { type: 'Error', name: 'Error', message: messages[name] ?? unseen });
});

test('an unregistered component is a 404 with Hypernova\'s message', async (t) => {
  const { results } = await serve(t, { components: { text: 'no function', object: { render: ok }, null: null, lazy: Promise.resolve(undefined) } });
  for (const name of ['missing', 'text', 'object', 'null', 'lazy']) {
    const { a } = await results({ a: { name } });
    assertFailed(a, { statusCode: 404, name: 'ReferenceError', message: `Component "${name}" not registered` });
    assert.deepEqual(a.error.stack.slice(0, 2), [`ReferenceError: Component "${name}" not registered`, `at YOUR-COMPONENT-DID-NOT-REGISTER_${name}:1:1`]);
    assert.ok(a.error.stack.length > 2);
  }
});

test('a module whose default export is a function is a component', async (t) => {
  const { results } = await serve(t, { components: { module: { default: () => 'default' }, later: Promise.resolve({ default: async () => 'later' }) } });
  const { a, b } = await results({ a: { name: 'module' }, b: { name: 'later' } });
  assert.deepEqual([a.html, b.html], ['default', 'later']);
});

test('a component that returns nothing fails with Hypernova\'s intended message', async (t) => {
  const found = await together(t, { empty: () => '', undefined: () => undefined, null: async () => null, function: () => ok, symbol: () => Symbol('s'), toJSON: () => ({ toJSON() {} }) });
  for (const name of ['empty', 'undefined', 'null', 'function', 'symbol', 'toJSON']) {
    assertFailed(found[name], { type: 'Error', name: 'Error', message: NO_HTML });
    assert.deepEqual(found[name].error.stack, ['']);
  }
});

test('a component may return any JSON value', async (t) => {
  const circle = { circle: undefined };
  circle.circle = circle;
  const found = await together(t, { number: () => 42, object: () => ({ head: '', body: '<p>' }), circle: () => circle, bigint: () => 1n });
  assert.equal(found.number.html, 42);
  assert.deepEqual(found.object.html, { head: '', body: '<p>' });
  assert.deepEqual([found.circle.error.name, found.circle.html], ['TypeError', null]);
  assertFailed(found.bigint, { name: 'TypeError', message: 'Do not know how to serialize a BigInt' });
});

test('meta that is no JSON fails only its job', async (t) => {
  const bad = (_props, context) => {
    context.returnMeta.count = 1n;
    return 'html';
  };
  const good = (_props, context) => {
    context.returnMeta = { status: 410 };
    return 'html';
  };
  const found = await together(t, { bad, good });
  assertFailed(found.bad, { name: 'TypeError', message: 'Do not know how to serialize a BigInt' });
  assert.deepEqual([found.good.meta, found.good.html], [{ status: 410 }, 'html']);
});

test('meta that JSON leaves out is empty, because clients read all fields', async (t) => {
  const values = { function: ok, symbol: Symbol('s'), toJSON: { toJSON() {} }, undefined: undefined, null: null };
  const components = Object.entries(values).map(([name, returnMeta]) => [name, (_props, context) => Object.assign(context, { returnMeta }).id]);
  const found = await together(t, Object.fromEntries(components));
  for (const name of Object.keys(values)) {
    assert.deepEqual([Object.keys(found[name]), found[name].meta, found[name].success], [FIELDS, {}, true], name);
  }
});

test('a component that makes its context unserializable fails its batch, not the process', async (t) => {
  const vandal = (_props, context) => Object.assign(context, { statusCode: 1n }).id;
  const { post, results, lines } = await serve(t, { components: { vandal, ok } });
  const answer = await post({ a: { name: 'vandal' } });
  assert.deepEqual([answer.status, await answer.text()], [500, '']);
  assert.match(lines[0], /^error: a batch has no answer: TypeError: Do not know how to serialize a BigInt/);
  assert.equal((await results({ a: { name: 'ok' } })).a.html, 'ok');
});

test('a job that is no object, or has no name, is a failed job', async (t) => {
  const { results } = await serve(t, { components: { ok } });
  const found = await results('{"null":null,"number":5,"text":"x","list":[1],"true":true,"empty":{},"ok":{"name":"ok"}}');
  for (const token of ['null', 'number', 'text', 'list', 'true', 'empty']) {
    const { error, ...rest } = found[token];
    assert.equal(error.message, 'Component "undefined" not registered', token);
    assert.deepEqual([rest.html, rest.statusCode, 'name' in rest], [null, 404, false], token);
  }
  assert.equal(found.ok.html, 'ok');
});

test('a name may be any JSON value', async (t) => {
  const { results } = await serve(t, { getComponent: () => undefined });
  const names = [7, null, true, [], { toString: 1 }, { toString: null, valueOf: null }, 'constructor', '__proto__', 'toString', ''];
  for (const name of names) {
    const { a } = await results({ a: { name } });
    assert.deepEqual([a.name, a.statusCode, a.success], [name, 404, false], JSON.stringify(name));
  }
});

test('a token may be any text, also a name of Object.prototype', async (t) => {
  const { post } = await serve(t, { components: { ok } });
  const tokens = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', '', ' "quoted" ', '\u2028', '12', '0'];
  const answer = await post(`{${tokens.map((token) => `${JSON.stringify(token)}:{"name":"ok"}`).join(',')}}`);
  const { results } = JSON.parse(await answer.text(), (key, value) => (key === 'results' ? Object.entries(value) : value));
  assert.deepEqual(new Set(results.map(([token]) => token)), new Set(tokens));
  assert.ok(results.every(([, { html }]) => html === 'ok'));
});

test('a render function gets the props and the context of getComponent', async (t) => {
  const seen = [];
  const render = (props, context) => seen.push({ props, context }) && context.id;
  const getComponent = (name, context) => seen.push({ name, context }) && render;
  const { results } = await serve(t, { getComponent });
  const jobs = { one: { name: 'A', data: { x: [1] }, metadata: { locale: 'fr' } }, two: { name: 'B', context: 'ignored' } };
  const { one, two } = await results(jobs);
  const [asked, rendered, askedAgain] = seen;
  assert.equal(asked.name, 'A');
  assert.equal(asked.context, rendered.context);
  assert.deepEqual(rendered.props, { x: [1] });
  const { signal, id, ...rest } = rendered.context;
  assert.ok(signal instanceof AbortSignal && !signal.aborted);
  assert.match(id, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  assert.deepEqual([one.html, two.html], [id, askedAgain.context.id]);
  assert.notEqual(one.html, two.html);
  assert.deepEqual({ ...rest, duration: 0 }, { name: 'A', token: 'one', props: { x: [1] }, metadata: { locale: 'fr' }, statusCode: 200, duration: 0, html: id, returnMeta: {} });
  assert.equal(askedAgain.context.metadata, undefined);
});

test('getComponent may throw or reject, which fails the job with 500', async (t) => {
  const { results } = await serve(t, {
    getComponent: (name) => {
      if (name === 'throws') throw new Error('cannot look');
      return Promise.reject(new Error('cannot find'));
    },
  });
  const { a, b } = await results({ a: { name: 'throws' }, b: { name: 'rejects' } });
  assertFailed(a, { name: 'Error', message: 'cannot look' });
  assert.equal(a.duration, null, 'as in Hypernova, it has not run');
  assert.ok(b.duration > 0);
  assertFailed(b, { name: 'Error', message: 'cannot find' });
});

test('jobs are rendered one after another, in the order of their tokens', async (t) => {
  assert.deepEqual(await overlap(t, {}), ['begin a', 'end a', 'begin b', 'end b']);
});

test('jobs are rendered all at once if the configuration says so', async (t) => {
  assert.deepEqual(await overlap(t, { processJobsConcurrently: true }), ['begin a', 'begin b', 'end a', 'end b']);
});

async function overlap(t, config) {
  const order = [];
  const slow = async (_props, { token }) => {
    order.push(`begin ${token}`);
    for (let i = 0; i < 5; i += 1) await turn();
    order.push(`end ${token}`);
    return 'x';
  };
  const { results } = await serve(t, { components: { slow }, ...config });
  await results({ a: { name: 'slow' }, b: { name: 'slow' } });
  return order;
}

test('a job that never ends fails after jobTimeout and is notified, and its siblings are not', async (t) => {
  const reasons = [];
  const never = (_props, { signal }) => {
    signal.onabort = () => reasons.push(signal.reason.message);
    return new Promise(() => {});
  };
  const found = await together(t, { never }, { jobTimeout: 20 });
  assertFailed(found.never, { name: 'Error', message: 'the job took longer than 20 ms' });
  assert.deepEqual(reasons, ['the job took longer than 20 ms']);
});

test('a jobTimeout that is longer than any timer of Node is no limit', async (t) => {
  // Node would fire such a timer after a millisecond.
  const later = () => new Promise((resolve) => setTimeout(resolve, 5, 'later'));
  for (const jobTimeout of [Infinity, Number.MAX_SAFE_INTEGER, 2 ** 31]) {
    const found = await together(t, { later }, { jobTimeout });
    assert.deepEqual([found.later.html, found.later.error], ['later', null]);
  }
});

test('when the client disconnects, the signal aborts, waits end, and no job starts', async (t) => {
  const begun = [];
  let told;
  const gone = new Promise((resolve) => (told = resolve));
  const waits = (_props, { token, signal }) => {
    begun.push(token);
    signal.addEventListener('abort', () => told(signal.reason));
    return new Promise(() => {});
  };
  let ended;
  const end = new Promise((resolve) => (ended = resolve));
  const { url } = await serve(t, { components: { waits }, plugins: [{ batchEnd: () => ended() }] });
  const client = request(`${url}/batch`, { method: 'POST', headers: JSON_TYPE });
  client.on('error', () => {}); // it closes the connection on purpose
  client.end(JSON.stringify({ a: { name: 'waits' }, b: { name: 'waits' } }));
  while (begun.length === 0) await turn();
  client.destroy();
  assert.equal((await gone).message, 'the client left');
  await end;
  assert.deepEqual(begun, ['a']);
});

test('no job starts for a client that left before the batch began', async (t) => {
  const begun = [];
  let ended;
  const end = new Promise((resolve) => (ended = resolve));
  const render = createRenderer({ getComponent: (name) => begun.push(name) && ok, plugins: [{ batchEnd: () => ended() }] });
  const server = createServer(async (incoming, response) => {
    incoming.body = await json(incoming);
    response.once('close', () => render(incoming, response));
    client.destroy();
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const client = request({ port: server.address().port, path: '/batch', method: 'POST', headers: JSON_TYPE });
  client.on('error', () => {}); // it closes the connection on purpose
  client.end(JSON.stringify({ a: { name: 'A' }, b: { name: 'B' } }));
  await end;
  assert.deepEqual(begun, []);
});

/** Computes for longer than a batch does without a turn of the event loop. */
function compute() {
  const until = performance.now() + 15;
  while (performance.now() < until);
}

test('the event loop turns between jobs that compute', async (t) => {
  for (const processJobsConcurrently of [false, true]) {
    let turns = 0;
    const first = () => {
      setImmediate(() => (turns += 1));
      compute();
      return 'first';
    };
    const { results } = await serve(t, { components: { first, second: () => `after ${turns}` }, processJobsConcurrently });
    const { b } = await results({ a: { name: 'first' }, b: { name: 'second' } });
    assert.equal(b.html, 'after 1');
  }
});

test('when the client disconnects, the other jobs that compute do not start', async (t) => {
  const JOBS = 200;
  let begun = 0;
  const computes = () => {
    begun += 1;
    setImmediate(() => client.destroy());
    compute();
    return 'computed';
  };
  let ended;
  const end = new Promise((resolve) => (ended = resolve));
  const { url } = await serve(t, { components: { computes }, plugins: [{ batchEnd: () => ended() }] });
  const client = request(`${url}/batch`, { method: 'POST', headers: JSON_TYPE });
  client.on('error', () => {}); // it closes the connection on purpose
  client.end(JSON.stringify(Array.from({ length: JOBS }, () => ({ name: 'computes' }))));
  await end;
  assert.ok(begun > 0 && begun < JOBS, `${begun} of ${JOBS} jobs`);
});

test('what a component leaves in a cache does not keep the data of its job', async (t) => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc');
  const cache = [];
  let data;
  const leaves = (props) => {
    data = new WeakRef(props);
    // Node 20 and 22 store the account of the job in the promise, and every Node does in the resource.
    cache.push(Promise.resolve(), new AsyncResource('CACHED'));
    return 'rendered';
  };
  const { results } = await serve(t, { components: { leaves } });
  assert.equal((await results({ a: { name: 'leaves', data: { city: 'Ghent' } } })).a.html, 'rendered');
  await eventually('the data of the job to be collected', () => {
    collectGarbage();
    return data.deref() === undefined;
  });
  assert.equal(cache.length, 2);
});
