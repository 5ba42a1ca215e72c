// HAProxy as its users run it: one thread, all timeouts set, shared connections to the servers, and a queue in front of
// full servers. The limits are those of Airbnb's published stack for server-side rendering, in the syntax of HAProxy 2.6.
import { freePort } from '../lib/session.mjs';
import { untilAnswers } from '../lib/http.mjs';

export const haproxy = {
  title: 'HAProxy',
  packages: ['haproxy'],

  /** `members` are Unix sockets, `slots` the requests at once per member, `tunnels` the WebSockets per member. */
  async start(session, { members, slots, tunnels, cpu, queueTimeout, probe, tls }) {
    const port = await freePort();
    const settings = { bind: `127.0.0.1:${port}`, members, slots: Math.max(slots, tunnels ?? 0), queueTimeout, edge: true, tls };
    const started = startHaproxy(session, { cpu, ...settings });
    await untilAnswers(port, { path: probe, tls: Boolean(tls), processes: [started] });
    return { port, processes: [started] };
  },
};

export function startHaproxy(session, { cpu, ...settings }) {
  const file = session.write('haproxy.cfg', configuration(settings));
  return session.start('haproxy', ['-db', '-f', file], { cpu, name: 'haproxy' });
}

/**
 * `edge`: this HAProxy serves the clients, so it adds their addresses for the workers; nginx in front does this otherwise.
 * `threads`: null is HAProxy's default, one for each core. `runtime`: a socket for commands. The last `spare` members are disabled until they have a process.
 */
export function configuration({ bind, members, slots, queueTimeout, edge, runtime, spare = 0, tls, threads = 1 }) {
  const idle = (i) => (i >= members.length - spare ? ' disabled' : '');
  const servers = members.map((path, i) => `    server worker${i + 1} unix@${path} maxconn ${slots}${idle(i)}`);
  const forwarded = ['    option forwardfor', `    http-request set-header X-Forwarded-Proto ${tls ? 'https' : 'http'}`];
  const secure = tls ? `\n    ssl-default-bind-options ssl-min-ver TLSv1.2` : '';
  return `global
${threads === null ? '' : `    nbthread ${threads}\n`}    maxconn 4096${secure}${runtime ? `\n    stats socket ${runtime} mode 600 level admin` : ''}

defaults
    mode http
    no log
    balance roundrobin
    option http-keep-alive
    http-reuse always
    option redispatch
    retries 3
    timeout connect 5s
    timeout queue ${queueTimeout}
    timeout client 60s
    timeout server 60s
    timeout http-request 10s
    timeout http-keep-alive 75s
    timeout tunnel 1h

frontend site
    bind ${bind}${tls ? ` ssl crt ${tls.both} alpn h2,http/1.1` : ''}
${edge ? forwarded.join('\n') : ''}
    default_backend workers

backend workers
${servers.join('\n')}
`;
}
