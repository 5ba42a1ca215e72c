// Where, when and on which machine a result was measured. Knows the machine and git, nothing of the scenarios.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { lookupsVersions } from './lookups.mjs';
import { ROOT, hostlerBinary, pm2Version, vegetaVersion, version } from './tools.mjs';

export function stamp() {
  return {
    date: new Date().toISOString(),
    commit: git('rev-parse', 'HEAD'),
    // The files that the bench writes do not make a tree dirty.
    dirty: git('status', '--porcelain', '--', '.', ':!bench/results', ':!bench/RESULTS.md', ':!docs/benchmarks.md', ':!docs/benchmarks') !== '',
    // The commit of such a program is not known.
    ...(process.env.HOSTLER_BIN ? { binary: process.env.HOSTLER_BIN } : {}),
    machine: {
      cpu: cpus()[0].model.trim(),
      cores: cpus().length,
      memory_gib: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
      system: /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'unknown',
    },
    versions: {
      hostler: version(hostlerBinary()),
      haproxy: version('haproxy', '-v'),
      nginx: version('nginx', '-v'),
      varnish: version('varnishd', '-V'),
      memcached: version('memcached', '-V'),
      fastify: lookupsVersions().fastify,
      maxmind: lookupsVersions().maxmind,
      ab: version('ab', '-V'),
      node: process.versions.node,
      pm2: pm2Version(),
      wrk: version('wrk', '-v'),
      vegeta: vegetaVersion(),
      h2load: version('h2load'),
      go: version('go', 'version'),
    },
  };
}

function git(...args) {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}
