// nginx as its own users run it in front of workers: one process, kept-alive upstream connections, buffering both ways.
// It cannot queue for a worker that is busy, so it takes part alone only where slots are plenty.
import { mkdirSync } from 'node:fs';
import { freePort } from '../lib/session.mjs';
import { untilAnswers } from '../lib/http.mjs';

export const nginx = {
  title: 'nginx',
  packages: ['nginx'],

  async start(session, { members, cpu, probe }) {
    const { port, started } = await startNginx(session, { upstreams: members, cpu });
    await untilAnswers(port, { path: probe, processes: [started] });
    return { port, processes: [started] };
  },
};

export async function startNginx(session, { upstreams, cpu }) {
  const port = await freePort();
  const dir = session.path('nginx');
  mkdirSync(dir);
  const file = session.write('nginx.conf', configuration({ dir, port, upstreams }));
  // -e: until the file is read, nginx would write to the error log of the machine's own nginx.
  const started = session.start('nginx', ['-e', 'stderr', '-p', dir, '-c', file], { cpu, name: 'nginx' });
  return { port, started };
}

export function configuration({ dir, port, upstreams, user = process.getuid() === 0 ? 'root' : null }) {
  return `# Workers of a master that is root would become www-data and could not reach the sockets in our folder.
${user ? `user ${user};` : ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid ${dir}/nginx.pid;
error_log stderr warn;

events {
    worker_connections 8192;
}

http {
    access_log off;
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 75s;
    keepalive_requests 10000000;
    client_body_temp_path ${dir}/body;
    proxy_temp_path ${dir}/proxy;
    fastcgi_temp_path ${dir}/fastcgi;
    uwsgi_temp_path ${dir}/uwsgi;
    scgi_temp_path ${dir}/scgi;

    upstream workers {
${upstreams.map((path) => `        server unix:${path} fail_timeout=0;`).join('\n')}
        keepalive 256;
        keepalive_requests 10000000;
    }

    server {
        listen 127.0.0.1:${port} backlog=4096;
        client_max_body_size 10m;
        client_body_buffer_size 256k;
        proxy_buffer_size 8k;
        proxy_buffers 8 128k;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
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
