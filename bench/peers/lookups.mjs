// The two lookups in four ways: Hostler's own, Fastify, plain Node, and nginx with one fixed text. Knows how they are
// started, not what is measured.
import { mkdirSync } from 'node:fs';
import { launch } from './hostler.mjs';
import { opening } from './nginx.mjs';
import { data, services } from '../lib/lookups.mjs';
import { freePort } from '../lib/session.mjs';

export const LOOKUPS = {
  hostler: {
    title: 'Hostler',
    packages: [],
    start: (session, { cpu, geo = true }) => {
      const routes = `[postal]\ndata = ${toml(data.postal)}\n${geo ? `\n[geo]\ndatabases = ${toml(data.geo)}\n` : ''}
[[routes]]\nmatch = "/*"\npostal = true\n${geo ? 'geo = true\n' : ''}`;
      return launch(session, { threads: 1, trusted: ['127.0.0.1'], more: routes }, { cpu });
    },
  },
  nginx: {
    title: 'nginx return 200',
    packages: ['nginx'],
    /** `said`: the response by path, { headers, body }, as another peer sends it. */
    async start(session, { cpu, said }) {
      const port = await freePort();
      const dir = session.path('nginx');
      mkdirSync(dir);
      const file = session.write('nginx.conf', nginxConfiguration({ dir, port, said }));
      return { port, processes: [session.start('nginx', ['-e', 'stderr', '-p', dir, '-c', file], { cpu, name: 'nginx' })] };
    },
  },
  fastify: { title: 'Fastify', packages: [], start: (session, settings) => node(session, services.fastify, settings) },
  node: { title: 'plain Node', packages: [], start: (session, settings) => node(session, services.node, settings) },
};

async function node(session, file, { cpu, geo = true }) {
  const port = await freePort();
  const env = { NODE_ENV: 'production', PORT: String(port), POSTAL: data.postal, ...(geo ? { GEO: data.geo[0] } : {}) };
  return { port, processes: [session.start(process.execPath, [file], { cwd: services.folder, cpu, env, name: 'lookups' })] };
}

export function nginxConfiguration({ dir, port, said }) {
  return `${opening({ dir })}
    server {
        listen 127.0.0.1:${port} backlog=4096;
        default_type application/json;
${Object.entries(said).map(location).join('')}    }
}
`;
}

function location([path, { headers, body }]) {
  const lines = Object.entries(headers).map(([name, value]) => `            add_header ${name} ${quoted(value)};\n`);
  return `
        location = ${path} {
${lines.join('')}            return 200 ${quoted(body)};
        }
`;
}

const quoted = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const toml = (value) => JSON.stringify(value); // strings and arrays of strings have the same syntax in both
