// The Autobahn suite's cases against an app on `ws`: behind Hostler, with and without TLS, each case has the same result
// as without Hostler.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually, freePort, kosokuProgram, startHostler } from '@hostler/testkit';

const ECHO = fileURLToPath(new URL('echo.mjs', import.meta.url));
/**
 * All cases except most of those about compression (12 and 13): they run for minutes and test the app's zlib, while a tunnel
 * passes compressed data unchanged. One case for each window size is included.
 */
const CASES = [1, 2, 3, 4, 5, 6, 7, 9, 10].map((group) => `${group}.*`).concat('12.1.1', '12.2.1', '13.1.1', '13.3.1');
const FEWEST = 300;
const FAILED = /FAILED|ERROR|UNIMPLEMENTED/;

const program = kosokuProgram();

test('every case has the same verdict behind Hostler as without it', { skip: !program && 'kosoku is missing' }, async (t) => {
  const [alone, site] = await Promise.all([startAlone(t), startBehind(t)]);
  const expected = await verdicts(t, alone, (verdict) => !FAILED.test(verdict));
  assert.ok(Object.keys(expected).length >= FEWEST, `only ${Object.keys(expected).length} cases`);
  const bad = Object.entries(expected).filter(([, verdict]) => FAILED.test(verdict));
  assert.deepEqual(bad, [], 'the app itself conforms');

  const isSame = (verdict, id) => verdict === expected[id];
  assert.deepEqual(await verdicts(t, new URL(site.url).host, isSame), expected);
  assert.deepEqual(await verdicts(t, await withoutTls(t, site.tls), isSame), expected);
});

/**
 * The result of each case. Many cases wait for a second at most, which a busy machine may miss once, so a case with a result
 * other than `right` is repeated.
 */
async function verdicts(t, host, right) {
  const found = await runCases(t, host, CASES, 4);
  const again = Object.keys(found).filter((id) => !right(found[id], id));
  return again.length === 0 ? found : { ...found, ...(await runCases(t, host, again, 1)) };
}

async function runCases(t, host, cases, parallel) {
  const folder = await mkdtemp(join(tmpdir(), 'hostler-kosoku-'));
  t.after(() => rm(folder, { recursive: true }));
  const included = cases.flatMap((each) => ['--include', each]);
  // The report says which cases have failed.
  await promisify(execFile)(program, [`ws://${host}`, '--parallelism', `${parallel}`, '--outdir', folder, ...included]).catch(() => {});
  const [report] = Object.values(JSON.parse(await readFile(join(folder, 'index.json'), 'utf8')));
  const verdict = ({ behavior, behaviorClose, remoteCloseCode }) => `${behavior}, closed ${behaviorClose} with ${remoteCloseCode}`;
  return Object.fromEntries(Object.entries(report).map(([id, result]) => [id, verdict(result)]));
}

async function startAlone(t) {
  const port = await freePort();
  const app = spawn(process.execPath, [ECHO], { env: { ...process.env, PORT: port }, stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = once(app, 'exit');
  t.after(async () => {
    app.kill();
    await ended;
  });
  await eventually('the app to listen', () => fetch(`http://127.0.0.1:${port}`).then(({ ok }) => ok, () => false));
  return `127.0.0.1:${port}`;
}

async function startBehind(t) {
  const folder = await mkdtemp(join(tmpdir(), 'hostler-tls-'));
  t.after(() => rm(folder, { recursive: true }));
  const [cert, key, tls] = [join(folder, 'cert.pem'), join(folder, 'key.pem'), await freePort()];
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=localhost'];
  await promisify(execFile)('openssl', [...made, '-days', '2', '-keyout', key, '-out', cert]);
  const config = `
    [tls]
    listen = ["127.0.0.1:${tls}"]
    certificates = [{ cert = "${cert}", key = "${key}" }]
    [pools.echo]
    command = ["${process.execPath}", "${ECHO}"]
    workers = 1
  `;
  const site = await startHostler({ config });
  t.after(() => site.stop());
  return { url: site.url, tls };
}

/** Accepts connections without TLS for a port with TLS, because kosoku does not support TLS. Each end is passed on. */
async function withoutTls(t, port) {
  const door = createServer({ allowHalfOpen: true }, (client) => {
    const server = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'], allowHalfOpen: true });
    for (const [from, to] of [[client, server], [server, client]]) {
      from.pipe(to);
      from.on('error', () => to.destroy());
    }
  });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  t.after(() => door.close());
  return `127.0.0.1:${door.address().port}`;
}
