// Lints what packages and releases are made from: Dockerfiles, Kubernetes manifests, the systemd unit, workflows. Knows no other check.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages } from '../debian.mjs';
import { has, root } from '../steps.mjs';
import { makeActionlint, makeLinters } from '../tools.mjs';

/** The schemas with which the manifests are checked. */
const KUBERNETES = '1.34';
/** The exposure of the unit by `systemd-analyze security`, in tenths: docs/guide/install.md says it. More fails. */
export const EXPOSURE = 18;
/** A name of the unit's program, in place of one that only the package installs. */
const PROGRAM = /\/usr\/bin\/hostler\b/g;

/** `check` runs a command and returns its name if it fails. `missing` reports a program that is not there. Returns what has failed. */
export async function lintPackaging({ check, missing }) {
  const linters = await makeLinters();
  const names = ['Dockerfiles (hadolint)', 'Kubernetes manifests (kubernetes-validate)'];
  const failed = [];
  if (linters.folder) {
    failed.push(await check(names[0], join(linters.folder, 'hadolint'), filesIn('packaging/docker', /Dockerfile$/)));
    failed.push(await check(names[1], join(linters.folder, 'kubernetes-validate'), ['--strict', '--kubernetes-version', KUBERNETES, ...filesIn('packaging/kubernetes', /\.yaml$/)]));
  } else failed.push(...names.map((name) => missing(name, linters.reason)));
  const workflows = 'Workflows (actionlint)';
  const { path, reason } = await makeActionlint();
  // Without shellcheck, which is not always there: the same everywhere.
  failed.push(path ? await check(workflows, path, ['-shellcheck=', '-pyflakes=', ...filesIn('.github/workflows', /\.yml$/)]) : missing(workflows, reason));
  failed.push(...(await lintUnit({ check, missing })));
  return failed;
}

/** The unit is right, and not more exposed than the guide says. */
async function lintUnit({ check, missing }) {
  const names = ['systemd unit (systemd-analyze verify)', 'systemd unit (systemd-analyze security)'];
  if (!has('systemd-analyze')) await installPackages(['systemd']);
  if (!has('systemd-analyze')) return names.map((name) => missing(name, 'there is no systemd-analyze on this machine'));
  const folder = mkdtempSync(join(tmpdir(), 'hostler-unit-'));
  try {
    const unit = join(folder, 'hostler.service');
    writeFileSync(unit, readFileSync(join(root, 'packaging/debian/hostler.service'), 'utf8').replace(PROGRAM, process.execPath));
    return [
      await check(names[0], 'systemd-analyze', ['verify', '--man=no', unit]),
      await check(names[1], 'systemd-analyze', ['security', '--offline=true', `--threshold=${EXPOSURE}`, '--no-pager', unit]),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function filesIn(folder, name) {
  const found = readdirSync(join(root, folder)).filter((file) => name.test(file));
  if (found.length === 0) throw new Error(`there is no file ${name} in ${folder}`);
  return found.map((file) => join(folder, file));
}
