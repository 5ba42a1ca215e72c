// The script that the Debian package runs after an installation, with commands that write down how they are called.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const SCRIPT = join(import.meta.dirname, '../packaging/debian/postinst');
const folder = await mkdtemp(join(tmpdir(), 'hostler-postinst-'));
after(() => rm(folder, { recursive: true }));

/** What an update orders, if `hostler upgrade` ends with `code`, `hostler status --json` prints `status` (and fails without one) and `hostler check` ends with `checked`. */
async function orders(name, code, status, checked = 0) {
  const bin = join(folder, name);
  const log = join(bin, 'log');
  await mkdir(bin);
  const commands = {
    hostler: `case $1 in upgrade) exit ${code};; check) exit ${checked};; status) [ -n '${status}' ] && echo '${status}';; esac`,
    'deb-systemd-invoke': `echo "$*" >> '${log}'`,
    'deb-systemd-helper': '',
    systemctl: '',
    getent: '',
  };
  for (const [command, text] of Object.entries(commands)) await writeFile(join(bin, command), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const text = (await readFile(SCRIPT, 'utf8')).replaceAll('/usr/bin/hostler', join(bin, 'hostler')).replaceAll('/run/systemd/system', bin);
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const ran = spawnSync('sh', ['-c', text, 'postinst', 'configure', '0.1.0'], { encoding: 'utf8', env });
  assert.equal(ran.status, 0, ran.stderr);
  return { invoked: existsSync(log) ? await readFile(log, 'utf8') : '', said: ran.stderr };
}

test('an update restarts the service only if the old version does not answer', async () => {
  assert.deepEqual(await orders('upgraded', 0, ''), { invoked: '', said: '' });
  const failed = await orders('failed', 1, '{ "pools": [{ "paused": false }] }');
  assert.equal(failed.invoked, '', 'the workers of the old version serve');
  assert.match(failed.said, /the upgrade has failed .*, so the old version goes on/);
  assert.equal((await orders('mute', 1, '')).invoked, 'restart hostler.service\n');
  const paused = await orders('paused', 1, '{ "pools": [{ "paused": true }] }');
  assert.equal(paused.invoked, '');
  assert.match(paused.said, /a pool is paused, so the old version goes on/);
  const refused = await orders('refused', 1, '{ "pools": [{ "paused": false }] }', 2);
  assert.equal(refused.invoked, '', 'the new version would not start');
  assert.match(refused.said, /the new version refuses .*, so the old version goes on/);
});
