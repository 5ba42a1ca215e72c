// Hostler in its two forms: in front of external members (proxy cost), and with its own workers.
import { hostlerBinary } from '../lib/tools.mjs';
import { freePort } from '../lib/session.mjs';
import { untilAnswers } from '../lib/http.mjs';

export const hostler = {
  title: 'Hostler',
  packages: [],

  async start(session, { members, slots, tunnels, cpu, queueTimeout, queueLimit, probe, tls }) {
    const members_ = members.map((path) => `unix:${path}`);
    const pool = [`members = ${toml(members_)}`, `concurrency = ${slots}`, ...(tunnels ? [`max_tunnels = ${tunnels}`] : [])];
    return start(session, { pool, queueTimeout, queueLimit, cpu, probe, tls, threads: 1 });
  },
};

/** Supervised workers. `app` is what they run. One thread on the data plane, unless `threads` says otherwise. */
export function startWithWorkers(session, settings) {
  return start(session, { ...withWorkers(settings), probe: settings.app.short });
}

/** `order`: the order of the queue. `fair`: the keys of a fair queue. `threads`: null is Hostler's default. `policy`: null is the default, too. `more`: as for `configuration`. */
export function withWorkers({ app, workers, concurrency, queueTimeout, warmup, gc = 'off', threads = 1, policy = null, order = null, fair = null, trusted = [], more }) {
  const pool = [
    `command = ${toml(app.command)}`,
    `cwd = ${toml(app.dir)}`,
    `env = { NODE_ENV = "production" }`,
    `workers = ${workers}`,
    `concurrency = ${concurrency}`,
    `gc = "${gc}"`,
    ...(warmup ? [`warmup = ${toml(warmup)}`] : []),
  ];
  return { pool, queueTimeout, threads, policy, order, fair, trusted, more };
}

/** Supervised workers that can be replaced. `deploy` runs the operator's command. */
export async function startRestartable(session, { app, ...settings }) {
  const admin = `127.0.0.1:${await freePort()}`;
  const launched = await start(session, { ...withWorkers({ app, ...settings, warmup: [app.short] }), admin, probe: app.short });
  const deploy = () => session.run(hostlerBinary(), ['restart', '--admin', admin], { name: 'hostler-restart' });
  return { port: launched.port, processes: () => launched.processes, deploy };
}

async function start(session, { cpu, probe, ...settings }) {
  const launched = await launch(session, settings, { cpu });
  await untilAnswers(launched.port, { path: probe, tls: Boolean(settings.tls), processes: launched.processes });
  return launched;
}

/** Starts it without waiting for a response, because the idle scenario measures that time. */
export async function launch(session, settings, { cpu } = {}) {
  const port = await freePort();
  const plain = settings.tls ? await freePort() : port;
  const file = session.write('hostler.toml', configuration({ port, plain, ...settings }));
  const started = session.start(hostlerBinary(), ['start', '-c', file], { cpu, name: 'hostler' });
  return { port, processes: [started] };
}

/**
 * The queue has practically no limit on its length, as HAProxy has none. Only the waiting time of a request is limited, for
 * both. `more`: further sections; if they have no route, the pool has all paths.
 */
export function configuration({ port, plain = port, admin = 'off', threads, trusted = [], pool, queueTimeout, queueLimit = 10000, policy, order, fair, tls, more }) {
  const sections = [
    `[server]
listen = ["127.0.0.1:${plain}"]
admin = "${admin}"
${threads === null ? '' : `threads = ${threads}\n`}access_log = "off"${trusted.length > 0 ? `\ntrusted_proxies = ${toml(trusted)}` : ''}
`,
    pool && `[pools.web]
${pool.join('\n')}

[pools.web.queue]
limit = ${queueLimit}
timeout = "${queueTimeout}"
${policy ? `policy = "${policy}"\n` : ''}${order ? `order = "${order}"\n` : ''}${fair ? `fair = ${toml(fair)}\n` : ''}`,
    tls && tlsSection({ port, ...tls }),
    more,
  ];
  return sections.filter(Boolean).join('\n');
}

function tlsSection({ port, cert, key }) {
  return `[tls]
listen = ["127.0.0.1:${port}"]
certificates = [{ cert = ${toml(cert)}, key = ${toml(key)} }]
`;
}

const toml = (value) => JSON.stringify(value); // strings and arrays of strings have the same syntax in both
