// The quick start and the pages for readers, command by command. `next.test.mjs` follows the page for Next.js. Knows no framework.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, startNats } from '@hostler/testkit';

import { runCommands, writeInto } from '../support/app.mjs';
import { readPage } from '../support/page.mjs';
import { emptyFolder, freeAddresses, inBackground } from '../support/terminal.mjs';

const quick = readPage('quick-start');
const HELLO = /Hello from Node/;
const FIRST = 'Do this first';

/** The shell blocks below a heading, in their order. */
const commands = (page, heading = FIRST) => page.section(heading).filter(({ language }) => language === 'sh').map(({ text }) => text);

test('quick start: run, init, check, start, status and restart', async (t) => {
  const cwd = await emptyFolder(t);
  await writeInto(cwd, 'server.js', quick.file('server.js'));
  const first = await freeAddresses();

  const run = inBackground(t, quick.commands('Run it'), { cwd, env: first.env });
  assert.match(await run.answers(first.url), HELLO);
  await run.stop();

  const { url, env } = await freeAddresses();
  const [write, begin] = commands(quick, 'Write a configuration file');
  await runCommands(write, { cwd, env });
  const server = inBackground(t, begin, { cwd, env });
  assert.match(await server.answers(url), HELLO);
  const { output } = await runCommands(quick.commands('Look at it, and deploy'), { cwd, env });
  assert.match(output, /queue wait/);
  assert.match(await server.answers(url), HELLO);
});

test('Express with PM2: init reads the ecosystem file, and Hostler runs it', async (t) => {
  const cwd = await emptyFolder(t);
  const moved = readPage('from-pm2');
  await writeInto(cwd, 'package.json', '{ "type": "module" }\n');
  for (const file of ['server.js', 'ecosystem.config.cjs']) await writeInto(cwd, file, moved.file(file));
  const { url, env } = await freeAddresses();
  const [write, begin] = commands(readPage('../readers/express-pm2'));
  await runCommands(write, { cwd, env });
  const server = inBackground(t, begin, { cwd, env });
  assert.equal(JSON.parse(await server.answers(url)).env, 'production');
});

test('nginx and HAProxy: the configuration is valid and runs', async (t) => {
  const cwd = await emptyFolder(t);
  const page = readPage('../readers/nginx-haproxy');
  await writeInto(cwd, 'server.js', quick.file('server.js'));
  await writeInto(cwd, 'hostler.toml', page.file('hostler.toml'));
  const { url, env } = await freeAddresses();
  const [, admin] = /^admin *= *"(.*)"$/m.exec(page.file('hostler.toml'));
  assert.ok(page.text.includes(`[live page](../guide/live.md) on http://${admin},`), 'the page names the admin address of its own file');
  const [check, begin] = commands(page);
  await runCommands(check, { cwd, env });
  assert.match(await inBackground(t, begin, { cwd, env }).answers(url), HELLO);
});

test('Hypernova: the service with the changed line renders a batch', async (t) => {
  const cwd = await emptyFolder(t);
  const page = readPage('../readers/hypernova');
  const [change] = page.section(FIRST).filter(({ language }) => language === 'js');
  await writeInto(cwd, 'package.json', '{}\n'); // not a module, whatever the repository is
  await writeInto(cwd, 'service.js', `${change.text}hypernova({ port: 8080, getComponent: () => (props) => \`<p>\${props.name}</p>\` });\n`);
  await writeInto(cwd, 'hostler.toml', page.file('hostler.toml'));
  const { url, env } = await freeAddresses();
  const [check, begin] = commands(page);
  await runCommands(check, { cwd, env });
  const server = inBackground(t, begin, { cwd, env });
  const batch = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ one: { name: 'Hello.js', data: { name: 'Ada' } } }) };
  const rendered = await eventually('a rendered job', async () => {
    const { one } = JSON.parse(await server.answers(`${url}/batch`, batch)).results;
    return one.success && one;
  });
  assert.match(rendered.html, /<p>Ada<\/p>/);
});

test('Cloud Foundry: Hostler starts with the configuration, and shows its routes', async (t) => {
  const nats = await startNats();
  if (!nats) return t.skip('there is no nats-server');
  t.after(nats.stop);
  const cwd = await emptyFolder(t);
  const page = readPage('../readers/cloud-foundry').with({ '127.0.0.1:4222': nats.address });
  await writeInto(cwd, 'hostler.toml', page.file('hostler.toml'));
  const { env } = await freeAddresses();
  const [check, begin] = commands(page);
  await runCommands(check, { cwd, env });
  inBackground(t, begin, { cwd, env });
  return eventually('hostler routes', () => runCommands('hostler routes', { cwd, env }));
});
