// Components from files: sandboxes, their globals, their caches, and files that fail to run.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { createGetComponent, createVM, getFiles, loadModules, Module } from '@hostler/render/server';
import { serve } from './support/renderer.mjs';

const require = createRequire(import.meta.url);
const names = (object) => Object.keys(object).sort();

/** Makes a folder with these files, by name. Returns their paths by name. */
async function folder(t, files) {
  const root = await mkdtemp(join(tmpdir(), 'hostler-render-'));
  t.after(() => rm(root, { recursive: true }));
  const paths = {};
  for (const [name, code] of Object.entries(files)) {
    paths[name] = join(root, name);
    await mkdir(dirname(paths[name]), { recursive: true });
    await writeFile(paths[name], code);
  }
  return { root, paths };
}

test('a component from a file is rendered, its default export too, and others are not registered', async (t) => {
  const files = { 'One.js': 'module.exports = ({ x }) => `one ${x}`;', 'Two.js': 'exports.default = async ({ x }) => `two ${x}`;' };
  const { paths } = await folder(t, files);
  const { results } = await serve(t, { getComponent: createGetComponent(paths) });
  const found = await results(['One.js', 'Two.js', 'Three.js', 'constructor'].map((name) => ({ name, data: { x: 7 } })));
  assert.deepEqual(Object.values(found).map(({ html, statusCode }) => html ?? statusCode), ['one 7', 'two 7', 404, 404]);
});

test('React 19 loads in a sandbox, and renders', async (t) => {
  const code = `
    const { createElement, useId } = require('react');
    const { renderToString } = require('react-dom/server');
    const Hello = ({ who }) => createElement('p', { id: useId() }, 'Hello, ', who);
    module.exports = (props, { id }) => renderToString(createElement(Hello, props), { identifierPrefix: id });`;
  const { root, paths } = await folder(t, { 'Hello.js': code });
  await symlink(resolve(dirname(require.resolve('react')), '..'), join(root, 'node_modules'));
  const { results } = await serve(t, { getComponent: createGetComponent(paths) });
  const { a } = await results({ a: { name: 'Hello.js', data: { who: 'Ada' } } });
  assert.match(a.html ?? JSON.stringify(a), /^<p id="_[\da-f-]{36}R_0_">Hello, <!-- -->Ada<\/p>$/);
});

test('a sandbox has every global of this Node, and its own language globals', async (t) => {
  const code = 'module.exports = { has: (name) => name in globalThis, Array, Promise, global, self: globalThis, process, Buffer, fetch, crypto };';
  const { paths } = await folder(t, { 'Globals.js': code });
  const found = createVM().run(paths['Globals.js'], code);
  const missing = Object.getOwnPropertyNames(globalThis).filter((name) => !found.has(name));
  assert.deepEqual(missing, []);
  assert.ok(['queueMicrotask', 'TextEncoder', 'MessageChannel', 'performance', 'structuredClone', 'console'].every(found.has));
  assert.equal(found.global, found.self);
  for (const name of ['process', 'Buffer', 'fetch', 'crypto']) assert.equal(found[name], globalThis[name], name);
  for (const name of ['Array', 'Promise']) assert.notEqual(found[name], globalThis[name], name);
});

test('globals that the application adds or deletes are not in a sandbox, nor is a window that was there before', () => {
  const code = `
    globalThis.window = globalThis.document = {};
    const { createVM } = require('@hostler/render/server');
    globalThis.added = 1;
    delete globalThis.BroadcastChannel;
    const names = ['window', 'document', 'added', 'BroadcastChannel', 'fetch'];
    console.log(names.filter(createVM().run('A.js', 'module.exports = (name) => name in globalThis;')).join());`;
  const output = execFileSync(process.execPath, ['-e', code], { cwd: import.meta.dirname, encoding: 'utf8' });
  assert.equal(output, 'fetch\n');
});

test('globals that a component sets stay in its sandbox', async (t) => {
  const code = 'globalThis.leak = 1; fetch = () => "mine"; setTimeout = undefined; module.exports = () => fetch();';
  const { paths } = await folder(t, { 'A.js': code, 'B.js': 'module.exports = () => `${typeof leak} ${typeof fetch} ${typeof setTimeout}`;' });
  const getComponent = createGetComponent(paths);
  assert.equal(getComponent('A.js')(), 'mine');
  assert.equal(getComponent('B.js')(), 'undefined function function');
  assert.deepEqual([typeof globalThis.leak, typeof setTimeout], ['undefined', 'function']);
});

test('files that a component requires run in its sandbox, once, in circles too, and Node\'s own are Node\'s', async (t) => {
  const { paths } = await folder(t, {
    'Page.js': `
      globalThis.count = 0;
      const a = require('./lib/a'), again = require('./lib/a.js'), data = require('./data.json'), fs = require('node:fs');
      module.exports = () => [a === again, count, a.b.seen, data.x, fs, require.resolve('./data.json'), __filename];`,
    'lib/a.js': 'exports.early = true; count += 1; exports.b = require("./b");',
    'lib/b.js': 'exports.seen = require("./a").early;',
    'data.json': '{"x":5}',
  });
  const render = createGetComponent({ Page: paths['Page.js'] })('Page');
  assert.deepEqual([...render()], [true, 1, true, 5, require('node:fs'), paths['data.json'], paths['Page.js']]);
});

test('a file that fails to run is reported by name and left out, and the others stay', async (t) => {
  const files = { 'Good.js': 'module.exports = () => "good";', 'Throws.js': 'throw new Error("at load");', 'Broken.js': 'syntax error(', 'Esm.js': 'require("./x.mjs")', 'x.mjs': '' };
  const { paths } = await folder(t, files);
  const reports = [];
  t.mock.method(console, 'error', (line) => reports.push(line));
  const getComponent = createGetComponent(Object.fromEntries(names(paths).filter((name) => name !== 'x.mjs').map((name) => [name, paths[name]])));
  assert.equal(getComponent('Good.js')(), 'good');
  for (const name of ['Throws.js', 'Broken.js', 'Esm.js']) assert.equal(getComponent(name), null);
  assert.equal(reports.length, 3);
  const [broken, esm, throws] = reports;
  assert.ok(broken.startsWith(`error: the component "Broken.js" is left out, ${paths['Broken.js']} cannot be run: ${paths['Broken.js']}:1`), broken);
  assert.ok(esm.includes('is an ES module, and a sandbox takes CommonJS only'), esm);
  assert.ok(throws.includes('Error: at load') && throws.includes(`${paths['Throws.js']}:1`), throws);
  assert.throws(() => createGetComponent({ None: join(dirname(paths['Good.js']), 'None.js') }), { code: 'ENOENT' });
});

test('a module that failed to load is loaded again by the next require', async (t) => {
  const { paths } = await folder(t, {
    'Page.js': 'const errors = []; for (let i = 0; i < 2; i += 1) try { require("./bad") } catch (error) { errors.push(error.message) } module.exports = () => errors.join();',
    'bad.js': 'globalThis.tries = (globalThis.tries ?? 0) + 1; throw new Error("try " + tries);',
  });
  assert.equal(createGetComponent({ Page: paths['Page.js'] })('Page')(), 'try 1,try 2');
});

test('a VM runs code once per name and content, and keeps the configured number', () => {
  const vm = createVM({ cacheSize: 2 });
  const code = 'module.exports = {};';
  const first = vm.run('/a.js', code);
  assert.equal(vm.run('/a.js', code), first);
  assert.notEqual(vm.run('/b.js', code), first);
  assert.notEqual(vm.run('/a.js', `${code}//`), first);
  assert.equal(vm.exportsCache.itemCount, 2);
  assert.notEqual(vm.run('/a.js', code), first);
  assert.match(vm.exportsCache.keys()[0], /^\/a\.js::[\da-f]{40}$/);
  const own = createVM({ getKey: (name) => name });
  assert.equal(own.run('/a.js', code), own.run('/a.js', 'module.exports = 1;'));
});

test('a cacheSize of 0 or Infinity is no limit for a VM, as in Hypernova', () => {
  for (const cacheSize of [0, Infinity, 1e9]) {
    const vm = createVM({ cacheSize });
    const found = ['/a.js', '/b.js', '/c.js'].map((name) => vm.run(name, 'module.exports = {};'));
    assert.equal(vm.run('/a.js', 'module.exports = {};'), found[0], `${cacheSize}`);
    assert.equal(vm.exportsCache.itemCount, 3);
  }
});

test('a VM forgets code on request, and keeps a module that exports nothing', () => {
  const vm = createVM({ getKey: (name) => name });
  const code = 'globalThis.process.runs = (process.runs ?? 0) + 1; module.exports = undefined;';
  assert.deepEqual([vm.run('a.js', code), vm.run('a.js', code), process.runs], [undefined, undefined, 1]);
  vm.run('b.js', code);
  vm.exportsCache.del('a.js');
  assert.deepEqual([vm.exportsCache.itemCount, vm.exportsCache.has('b.js'), vm.exportsCache.peek('b.js')], [1, true, undefined]);
  vm.exportsCache.reset();
  assert.equal(vm.exportsCache.itemCount, 0);
  vm.run('b.js', code);
  assert.equal(process.runs, 3);
  delete process.runs;
});

test('code may have any name, and requires by it from the working directory', async (t) => {
  const { root, paths } = await folder(t, { 'lib/part.js': 'exports.part = 1;', 'node_modules/pkg/index.js': 'module.exports = "pkg";' });
  const before = process.cwd();
  process.chdir(root);
  t.after(() => process.chdir(before));
  const code = 'module.exports = [__filename, module.id, require("pkg"), require.resolve("/lib/part".replace("/", PREFIX)), require("node:os")];';
  const found = (name, prefix) => [...createVM().run(name, code.replace('PREFIX', JSON.stringify(prefix)))];
  const os = require('node:os');
  assert.deepEqual(found('bundle.js', './'), ['bundle.js', 'bundle.js', 'pkg', await realpath(paths['lib/part.js']), os]);
  assert.deepEqual(found('lib/bundle.js', '../'), ['lib/bundle.js', 'lib/bundle.js', 'pkg', await realpath(paths['lib/part.js']), os]);
  for (const name of ['', 'https://cdn.example/app.js', 'a component', 'lib/']) assert.equal(createVM().run(name, 'module.exports = require("pkg");'), 'pkg', name);
  assert.throws(() => createVM().run('bundle.js', 'require("./nowhere");'), { code: 'MODULE_NOT_FOUND' });
});

test('Module has the parts of Hypernova\'s VM', async (t) => {
  const { root, paths } = await folder(t, { 'list.js': 'module.exports = [];', 'Page.js': '', 'twice.js': 'globalThis.twice = 2; module.exports = () => twice;' });
  const module = new Module(paths['Page.js']);
  module.load(paths['Page.js']);
  module._compile('const list = require("./list"); list.push(1); globalThis.leak = 1; module.exports = list;', paths['Page.js']);
  const list = require(paths['list.js']);
  assert.deepEqual([module.exports.length, list.length, typeof globalThis.leak], [1, 0, 'undefined']);
  const before = process.cwd();
  process.chdir(root);
  t.after(() => process.chdir(before));
  const loaded = Module.load('./list.js');
  assert.deepEqual([loaded.id, loaded.filename, loaded.loaded, loaded.exports.length], ['./list.js', './list.js', true, 0]);
  assert.throws(() => loaded.load('./list.js'), /The module \.\/list\.js has run already/);
  const named = Module.load('a list', paths['list.js']);
  assert.deepEqual([named.id, named.filename], ['a list', paths['list.js']]);
  assert.equal(Module.loadFile('./list', module), module.exports, 'the one that its sandbox has');
  assert.equal(Module.loadFile('./twice')(), 2);
  assert.equal(Module.loadFile('node:os'), require('node:os'));
});

test('getFiles names the files of a folder by their relative paths', async (t) => {
  const { root, paths } = await folder(t, { 'b.js': '', 'a/c.js': '', 'a/d.json': '', '.hidden/e.js': '' });
  assert.deepEqual(getFiles(root), [{ name: 'a/c.js', path: paths['a/c.js'] }, { name: 'b.js', path: paths['b.js'] }]);
});

test('getFiles takes the files of a folder behind a link, and does not run in the circles of links', async (t) => {
  const { root } = await folder(t, { 'a.js': '', 'b/c.js': '', 'd.js/e.js': '' });
  for (const [link, target] of [['one', '.'], ['b/two', '..'], ['b/three', '..'], ['self', 'self'], ['lost.js', 'nowhere']]) await symlink(target, join(root, link));
  const found = getFiles(root).map(({ name }) => name);
  assert.deepEqual(found, ['a.js', 'b/c.js', 'b/three/a.js', 'b/three/lost.js', 'b/two/a.js', 'b/two/lost.js', 'd.js/e.js', 'lost.js', 'one/a.js', 'one/lost.js']);
});

test('loadModules runs modules in the sandbox before the component, and skips missing ones', async (t) => {
  const { paths } = await folder(t, { 'setup.js': 'globalThis.locale = "fr";', 'shared.js': 'module.exports = { n: 0 };', 'Page.js': 'const shared = require("./shared"); module.exports = () => `${locale} ${shared.n += 1}`;' });
  const environment = loadModules(require, [paths['setup.js'], './not/there.js', paths['shared.js']]);
  const getComponent = createGetComponent({ One: paths['Page.js'] }, { environment });
  assert.deepEqual([getComponent('One')(), getComponent('One')()], ['fr 1', 'fr 2']);
});

test('other file extensions can have a loader', async (t) => {
  const { readFileSync } = require('node:fs');
  Module.addExtension('.upper', (module, filename) => module._compile(`module.exports = ${JSON.stringify(readFileSync(filename, 'utf8').toUpperCase())}`, filename));
  const { paths } = await folder(t, { 'Page.js': 'module.exports = () => require("./text.upper");', 'text.upper': 'quiet' });
  assert.equal(createGetComponent({ Page: paths['Page.js'] })('Page')(), 'QUIET');
});

test('a transpiler registered before is used for files in sandboxes too', async (t) => {
  const { root, paths } = await folder(t, { 'Page.js': 'module.exports = JSX;', 'Page.es6': 'module.exports = JSX;', 'package.json': '{"type":"module"}' });
  const hook = `
    const old = require.extensions['.js'];
    require.extensions['.js'] = (module, file) => {
      const compile = module._compile;
      module._compile = (code, name) => compile.call(module, code.replace('JSX', '"transpiled"'), name);
      return file.endsWith('Page.js') ? compile.call(module, 'module.exports = "transpiled"', file) : old(module, file);
    };
    require.extensions['.es6'] = (module, file) => module._compile('module.exports = "transpiled"', file);`;
  const run = (before) => {
    const code = `const before = Error.prepareStackTrace; ${before}; const { Module } = require(${JSON.stringify(require.resolve('@hostler/render/server'))});
      const said = (file) => { try { return Module.load(file).exports } catch (error) { return error.message } };
      console.log(JSON.stringify(${JSON.stringify([paths['Page.js'], paths['Page.es6']])}.map(said)), Error.prepareStackTrace === before, Error.stackTraceLimit);`;
    return execFileSync(process.execPath, ['--eval', code], { cwd: root, encoding: 'utf8' }).trim();
  };
  assert.equal(run(hook), '["transpiled","transpiled"] true 10');
  assert.equal(run(''), '["JSX is not defined","JSX is not defined"] true 10');
});

test('a component in a sandbox may import an ES module', async (t) => {
  const { paths } = await folder(t, { 'Page.js': 'module.exports = async () => (await import("./x.mjs")).default;', 'x.mjs': 'export default "imported";' });
  assert.equal(await createGetComponent({ Page: paths['Page.js'] })('Page')(), 'imported');
});
