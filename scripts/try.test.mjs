// The trials of packages, as far as they need no root: the steps of a Dockerfile, and the choice of a package. The trials themselves: npm run try-packages.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { follow } from './try/dockerfile.mjs';
import { archiveOf, only, Skipped, VERSION } from './try/steps.mjs';
import { root } from './steps.mjs';

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'hostler-try-test-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Bases that are empty folders. */
const bases = async (name, into) => {
  mkdirSync(into, { recursive: true });
  return {};
};

function written(text) {
  const path = join(folder, 'Dockerfile');
  writeFileSync(path, text);
  return path;
}

test('a stage copies files of the context and of an earlier stage, with the values of arguments', async () => {
  const context = join(folder, 'context');
  mkdirSync(context, { recursive: true });
  writeFileSync(join(context, 'hostler-1.2-x64.txt'), 'x64');
  writeFileSync(join(context, 'hostler-1.2-arm64.txt'), 'arm64');
  const dockerfile = written(`# a comment
ARG BASE=none
FROM --platform=$BUILDPLATFORM \${BASE} AS files
ARG VERSION
WORKDIR /unpacked
COPY hostler-\${VERSION}-*.txt ./

FROM scratch
COPY --from=files /unpacked /all
USER 5:6
CMD ["start", \\
     "--config"]
`);
  const names = [];
  const noted = (name, into) => names.push(name) && bases(name, into);
  const image = await follow(dockerfile, { context, folder: join(folder, 'made'), bases: noted, args: { VERSION: '1.2' } });
  assert.deepEqual(names, ['none', 'scratch']);
  assert.equal(readFileSync(join(image.folder, 'all/hostler-1.2-arm64.txt'), 'utf8'), 'arm64');
  assert.deepEqual([image.user, image.cmd, image.workdir], ['5:6', ['start', '--config'], '/']);
});

test('a step that the trial does not know is an error', async () => {
  await assert.rejects(follow(written('FROM scratch\nADD a b\n'), { context: folder, folder: join(folder, 'unknown'), bases }), /does not know the step ADD/);
});

test('a file that is not there is an error', async () => {
  const steps = written('FROM scratch\nCOPY absent-*.tar.gz ./\n');
  await assert.rejects(follow(steps, { context: folder, folder: join(folder, 'absent'), bases }), /there is no such file/);
});

test('a package that was not made skips its trial, and two versions of it are an error', () => {
  const dist = join(folder, 'dist');
  mkdirSync(dist);
  assert.throws(() => only(dist, /\.deb$/), Skipped);
  for (const name of ['a_1.deb', 'a_2.deb']) writeFileSync(join(dist, name), '');
  assert.throws(() => only(dist, /\.deb$/), /has several: a_1\.deb, a_2\.deb/);
});

test('the packages of a candidate for a release are tried as those of a release', () => {
  for (const version of ['0.2.0', '0.2.0-rc.1']) {
    assert.match(`hostler ${version}\n`, VERSION);
    assert.match(`hostler-${version}-linux-x64-musl.tar.gz`, archiveOf('linux-x64-musl'));
    assert.doesNotMatch(`hostler-${version}-linux-x64-musl-debug.tar.gz`, archiveOf('linux-x64-musl'));
  }
});

test('an unknown kind is refused with the kinds that exist', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/try.mjs', 'rpm'], { cwd: root, encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /rpm: give npm, deb, tar, image/);
});
