// nginx as its users run it in front of workers: one process, kept-alive upstream connections, buffering in both
// directions. It cannot queue requests for a busy worker, so it takes part alone only with many slots.
import { mkdirSync } from 'node:fs';
import { freePort } from '../lib/session.mjs';
import { untilAnswers } from '../lib/http.mjs';

export const nginx = {
  title: 'nginx',
  packages: ['nginx'],

  async start(session, { members, tunnels, cpu, probe, tls }) {
    const { port, started } = await startNginx(session, { upstreams: members, tunnels, cpu, tls });
    await untilAnswers(port, { path: probe, tls: Boolean(tls), processes: [started] });
    return { port, processes: [started] };
  },
};

export async function startNginx(session, { upstreams, tunnels, cpu, tls, workers, limit }) {
  const port = await freePort();
  const dir = session.path('nginx');
  mkdirSync(dir);
  const file = session.write('nginx.conf', configuration({ dir, port, upstreams, tunnels, tls, workers, limit }));
  // -e: before it has read the file, nginx would write to the error log of the machine's own nginx.
  const started = session.start('nginx', ['-e', 'stderr', '-p', dir, '-c', file], { cpu, name: 'nginx' });
  return { port, started };
}

/** The beginning of each configuration: one worker (or `workers`), no log, kept-alive connections, files in our folder. The `http` block is still open. */
export function opening({ dir, files = 65536, sending = [], workers = 1 }) {
  return `daemon off;
worker_processes ${workers};
worker_rlimit_nofile ${files};
pid ${dir}/nginx.pid;
error_log stderr warn;

events {
    worker_connections 8192;
}

http {
    access_log off;
    server_tokens off;
${sending.map((line) => `    ${line}\n`).join('')}    tcp_nodelay on;
    keepalive_timeout 75s;
    keepalive_requests 10000000;
    client_body_temp_path ${dir}/body;
    proxy_temp_path ${dir}/proxy;
    fastcgi_temp_path ${dir}/fastcgi;
    uwsgi_temp_path ${dir}/uwsgi;
    scgi_temp_path ${dir}/scgi;
`;
}

export function configuration({ dir, port, upstreams, tunnels, tls, workers, limit, user = process.getuid() === 0 ? 'root' : null }) {
  return `# Workers of a master that is root would become www-data and could not reach the sockets in our folder.
${user ? `user ${user};` : ''}
${opening({ dir, sending: ['sendfile on;', 'tcp_nopush on;'], workers })}
${tunnels ? UPGRADES : ''}${limit ? limited(limit) : ''}    upstream workers {
${upstreams.map((path) => `        server unix:${path} fail_timeout=0;`).join('\n')}
        keepalive 1024;
        keepalive_requests 10000000;
    }

    server {
        listen 127.0.0.1:${port}${tls ? ' ssl http2' : ''} backlog=4096;
${tls ? secure(tls) : ''}        client_max_body_size 10m;
        client_body_buffer_size 256k;
        proxy_buffer_size 8k;
        proxy_buffers 8 128k;
        proxy_http_version 1.1;
${tunnels ? TUNNELS : '        proxy_set_header Connection "";'}
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;

        location / {
            proxy_pass http://workers;
        }
    }
}
`;
}

/**
 * At most so many requests in a second of each client, and a burst of two seconds. The load generator says which client it is. By default
 * nginx writes a line into the error log for each refusal; no peer logs one here.
 */
function limited(rate) {
  return `    set_real_ip_from 127.0.0.1;
    real_ip_header X-Forwarded-For;
    limit_req_zone $binary_remote_addr zone=clients:10m rate=${rate}r/s;
    limit_req zone=clients burst=${2 * rate} nodelay;
    limit_req_log_level info;
`;
}

/** A session cache in addition to tickets, for clients of TLS 1.2 without tickets. */
function secure({ cert, key }) {
  return `        ssl_certificate ${cert};
        ssl_certificate_key ${key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:sessions:10m;
        ssl_session_timeout 1d;
`;
}

/** As in nginx's documentation for WebSockets, with kept-alive connections for everything else. */
const UPGRADES = `    map $http_upgrade $connection_upgrade {
        default upgrade;
        '' '';
    }

`;
const TUNNELS = `        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $connection_upgrade;
        proxy_read_timeout 1h;
        proxy_send_timeout 1h;`;
