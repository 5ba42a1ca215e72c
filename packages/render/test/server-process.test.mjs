// The service in its own process: uncaught errors, signals, an Express application.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, freePort } from '@hostler/testkit';
import hypernova from '@hostler/render/server';
import { client, JSON_TYPE } from './support/renderer.mjs';

async function start(t, app, env = {}) {
  const port = await freePort();
  const child = spawn(process.execPath, [fileURLToPath(new URL(`apps/${app}`, import.meta.url))], { env: { ...process.env, ...env, PORT: String(port) } });
  const ended = once(child, 'exit').then(([code, signal]) => ({ code, signal }));
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const lines = [];
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', (line) => lines.push(line));
  const said = (text) => eventually(`the service to say "${text}", not only\n${lines.join('\n')}`, () => lines.find((line) => line.includes(text)));
  await said('Connected');
  const url = `http://127.0.0.1:${port}`;
  return { child, ended, lines, said, port, url, ...client(url) };
}

test('an error that a component throws later fails only its job', async (t) => {
  const { results, child } = await start(t, 'service.cjs');
  const found = await results({ a: { name: 'timer' }, b: { name: 'promise' }, c: { name: 'nothing' }, d: { name: 'ok' } });
  assert.deepEqual(
    Object.values(found).map(({ html, statusCode, error }) => [html, statusCode, error?.message]),
    [[null, 500, 'in a timer'], [null, 500, 'in a promise'], [null, 500, 'null'], ['ok', 200, undefined]],
  );
  assert.equal(child.exitCode, null);
});

test('an error that a component throws after its end is logged with the name of its job', async (t) => {
  const { results, said, child } = await start(t, 'service.cjs');
  const { a, b } = await results({ a: { name: 'late' }, b: { name: 'lateRejection' } });
  assert.deepEqual([a.html, b.html], ['in time', 'in time']);
  await said('error: uncaught, from job "a" (component "late"), which has ended: Error: too late');
  await said('error: uncaught, from job "b" (component "lateRejection"), which has ended: Error: rejected too late');
  assert.equal((await results({ a: { name: 'ok' } })).a.html, 'ok');
  assert.equal(child.exitCode, null);
});

test('an error of a component that hears that its client has left belongs to its job, and ends no process', async (t) => {
  const { post, results, said, child } = await start(t, 'service.cjs');
  const leaving = new AbortController();
  const left = assert.rejects(post({ a: { name: 'throwsAtAbort' } }, { signal: leaving.signal }), { name: 'AbortError' });
  await said('waiting');
  leaving.abort();
  await left;
  await said('error: uncaught, from job "a" (component "throwsAtAbort"), which has ended: Error: at the abort');
  await said('error: uncaught, from job "a" (component "throwsAtAbort"), which has ended: Error: rejected at the abort');
  assert.equal((await results({ a: { name: 'ok' } })).a.html, 'ok');
  assert.equal(child.exitCode, null);
});

test('an error that a plugin throws after it has refused a job is logged with the name of the job', async (t) => {
  const { results, said } = await start(t, 'service.cjs');
  const { a } = await results({ a: { name: 'refused' } });
  assert.deepEqual([a.html, a.error.message], [null, 'refused']);
  await said('error: uncaught, from job "a" (component "refused"), which has ended: Error: after the refusal');
});

test('an error that belongs to no job ends the process, after running requests', async (t) => {
  const { results, said, ended } = await start(t, 'service.cjs');
  const { a } = await results({ a: { name: 'outside' } });
  assert.equal(a.html, 'rendered all the same');
  assert.deepEqual(await ended, { code: 1, signal: null });
  await said('error: an error that belongs to no job');
  await said('Error: without a job');
});

test('a rejection that belongs to no job ends the process too', async (t) => {
  const { results, said, ended } = await start(t, 'service.cjs');
  assert.equal((await results({ a: { name: 'rejectOutside' } })).a.html, 'rendered');
  assert.deepEqual(await ended, { code: 1, signal: null });
  await said('Error: rejected without a job');
});

test('a second service in the process changes nothing about errors', async (t) => {
  const { results, said, ended, lines } = await start(t, 'service.cjs', { SECOND: 'true' });
  assert.equal((await results({ a: { name: 'promise' } })).a.error.message, 'in a promise');
  assert.equal((await results({ a: { name: 'rejectOutside' } })).a.html, 'rendered');
  await said('error: an error that belongs to no job');
  assert.deepEqual(await ended, { code: 1, signal: null });
  assert.ok(!lines.some((line) => line.includes('which has ended') || line.includes('lets pass')), lines.join('\n'));
});

test('a rejection that belongs to no job ends no process that has its own listener for it, or a flag of Node', async (t) => {
  const listening = await start(t, 'service.cjs');
  await listening.results({ a: { name: 'listen' } });
  const flagged = await start(t, 'service.cjs', { NODE_OPTIONS: '--unhandled-rejections=warn' });
  for (const { results, said, child } of [listening, flagged]) {
    assert.equal((await results({ a: { name: 'rejectOutside' } })).a.html, 'rendered');
    await said('error: a rejection that belongs to no job, and that the application lets pass: Error: rejected without a job');
    assert.equal((await results({ a: { name: 'ok' } })).a.html, 'ok');
    assert.equal(child.exitCode, null);
  }
});

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} finishes running batches, notifies the plugins, and ends the process with 0`, async (t) => {
    const { post, said, child, ended, lines, port } = await start(t, 'service.cjs');
    await Promise.all([1, 2].map(async () => (await post({})).text())); // two connections, one of which will be idle
    const under = post({ a: { name: 'untilSignal' } });
    await said('waiting');
    child.kill(signal);
    child.kill(signal); // one Ctrl-C arrives twice: from the terminal and from npm
    const answer = await under;
    assert.equal(answer.headers.get('connection'), 'close');
    assert.equal((await answer.json()).results.a.html, 'waited');
    assert.deepEqual(await ended, { code: 0, signal: null });
    await said(`shutDown ${port} undefined`);
    assert.ok(lines.includes(`initialize ${port}`));
  });
}

test('with createApplication the endpoint is part of that application', async (t) => {
  const { results, post, url, child, said } = await start(t, 'with-express.mjs');
  assert.equal((await results({ a: { name: 'A', data: { x: 1 } } }, { path: '/BATCH/' })).a.html, 'A {"x":1}');
  assert.equal(await (await fetch(`${url}/health`)).text(), `${child.pid}`);
  assert.equal(await (await fetch(`${url}/later`)).text(), 'later');
  assert.equal(await (await post({ body: 'parsed' }, { path: '/echo' })).text(), '{"body":"parsed"}');
  assert.deepEqual([(await post('{bad', { headers: JSON_TYPE })).status, (await fetch(`${url}/batch`)).status], [400, 404]);
  await said('getCPUs and devMode have no effect');
});

test('a port that is taken ends the process with 1 and says why', async (t) => {
  const { port } = await start(t, 'service.cjs');
  const child = spawn(process.execPath, [fileURLToPath(new URL('apps/service.cjs', import.meta.url))], { env: { ...process.env, PORT: String(port) } });
  const [output, [code]] = await Promise.all([child.stderr.toArray(), once(child, 'exit')]);
  assert.equal(code, 1);
  assert.match(Buffer.concat(output).toString(), /error: cannot start: Error: listen EADDRINUSE/);
});

test('a plugin whose initialize fails ends the process with 1 and says why', async () => {
  const code = `require('@hostler/render/server')({ getComponent() {}, port: 0, plugins: [{ initialize: async () => { throw new Error('not today'); } }] })`;
  const child = spawn(process.execPath, ['-e', code], { cwd: fileURLToPath(new URL('.', import.meta.url)) });
  const [output, [exit]] = await Promise.all([child.stderr.toArray(), once(child, 'exit')]);
  assert.equal(exit, 1);
  assert.match(Buffer.concat(output).toString(), /^error: cannot start: Error: not today/);
});

test('plugins get the configuration with Hypernova\'s defaults, and null if the process ends without an error', async () => {
  const plugin = `{
    initialize: (config) => { console.log(JSON.stringify(config)); process.kill(process.pid, 'SIGTERM'); },
    shutDown: (config, error) => console.log('shutDown', config.endpoint, error),
  }`;
  const code = `require('@hostler/render/server')({ getComponent() {}, host: '127.0.0.1', listenArgs: [0], plugins: [${plugin}] })`;
  const child = spawn(process.execPath, ['-e', code], { cwd: fileURLToPath(new URL('.', import.meta.url)) });
  const [output, [exit]] = await Promise.all([child.stdout.toArray(), once(child, 'exit')]);
  const lines = Buffer.concat(output).toString().split('\n');
  const set = { bodyParser: { limit: 1_024_000 }, devMode: false, endpoint: '/batch', files: [], logger: {}, plugins: [{}], port: 8080, host: '127.0.0.1' };
  assert.deepEqual(JSON.parse(lines.find((line) => line.startsWith('{'))), { ...set, listenArgs: [0] });
  assert.ok(lines.includes('shutDown /batch null'), lines.join('\n'));
  assert.equal(exit, 0);
});

test('a plugin may replace getComponent in the configuration when it is initialized', async (t) => {
  const { results } = await start(t, 'plugin.cjs');
  assert.equal((await results({ a: { name: 'A' } })).a.html, 'A of the plugin');
});

test('an invalid Express application is refused, and options that need one report it', () => {
  const getComponent = () => undefined;
  const message = '`createApplication` must return a valid express instance with `use`, `post`, and `listen` methods';
  for (const app of [{}, () => {}, undefined]) assert.throws(() => hypernova({ getComponent, createApplication: () => app }), { name: 'TypeError', message });
  const plain = 'app.get needs Express: give `createApplication: () => express()` in the configuration';
  assert.throws(() => hypernova({ getComponent }, (app) => app.get('/health', () => {})), { name: 'TypeError', message: plain });
});
