// Caches in front of one origin, each with the same memory: Hostler, nginx, Varnish. Knows how they are started, not
// which requests they get.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './hostler.mjs';
import { opening } from './nginx.mjs';
import { freePort } from '../lib/session.mjs';

const SHARED_MEMORY = '/dev/shm';

export const CACHES = {
  hostler: {
    title: 'Hostler',
    packages: [],
    /** `memcached`: the port of a memcached on this machine. */
    start: (session, { origin, cpu, megabytes, memcached }) => {
      const pool = [`members = ["unix:${origin}"]`, 'concurrency = 1024'];
      const tier = memcached ? `memcached = "127.0.0.1:${memcached}"\n` : '';
      const more = `[cache]\nmemory = "${megabytes} MB"\n${tier}\n[[routes]]\nmatch = "*"\npool = "web"\ncache = "standard"\n`;
      return launch(session, { pool, queueTimeout: '10s', threads: 1, more }, { cpu });
    },
  },

  nginx: {
    title: 'nginx proxy_cache',
    packages: ['nginx'],
    /** `size`: the size of the pages. */
    async start(session, { origin, cpu, megabytes, size }) {
      const port = await freePort();
      const dir = session.path('nginx');
      mkdirSync(dir);
      // nginx stores files. They are in memory if the machine has a file system for that.
      const pages = existsSync(SHARED_MEMORY) ? mkdtempSync(join(SHARED_MEMORY, 'hostler-bench-')) : join(dir, 'pages');
      const file = session.write('nginx.conf', nginxConfiguration({ dir, pages, port, origin, megabytes, size }));
      const started = session.start('nginx', ['-e', 'stderr', '-p', dir, '-c', file], { cpu, name: 'nginx' });
      started.exit.then(() => rmSync(pages, { recursive: true, force: true }));
      return { port, processes: [started], pages };
    },
  },

  varnish: {
    title: 'Varnish',
    packages: ['varnish'],
    async start(session, { origin, cpu, megabytes }) {
      const port = await freePort();
      const dir = session.path('varnish');
      mkdirSync(dir);
      const file = session.write('site.vcl', varnishConfiguration({ origin }));
      const args = [
        '-F', '-n', dir, '-j', 'none', '-a', `127.0.0.1:${port}`, '-T', 'none', '-f', file, '-s', `default,${megabytes}m`,
        // A thread for each client, made in advance, so that a burst does not wait for threads.
        '-p', 'thread_pools=1', '-p', 'thread_pool_min=600', '-p', 'thread_pool_max=1000',
        // No cache writes an access log: here, the requests are not written to the shared log.
        '-p', `vsl_mask=${UNLOGGED}`,
      ];
      const started = session.start('varnishd', args, { cpu, name: 'varnish' });
      return { port, processes: [started] };
    },
  },
};

/** The hard limit on open files. With a larger value, nginx would accept no connection. */
function openFiles() {
  const [, , hard] = /^Max open files +(\S+) +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
  return hard === 'unlimited' ? 1_000_000 : Math.min(Number(hard), 1_000_000);
}

/** A page shorter than this is cheaper to copy than to send as a file. For nginx: 11 us instead of 17 at 1 kB, but 38 instead of 23 at 100 kB. */
const SMALL = 16_000;
const COPIED = '# Head and page in one call to the kernel.';
const CORK = '# Corked, a long response waits 200 ms for the end of a segment on loopback, where segments have 64 KiB.';

const UNLOGGED = [
  'Begin', 'End', 'Link', 'SessOpen', 'SessClose', 'ReqStart', 'ReqMethod', 'ReqURL', 'ReqProtocol', 'ReqHeader', 'ReqUnset', 'ReqAcct',
  'RespProtocol', 'RespStatus', 'RespReason', 'RespHeader', 'RespUnset', 'VCL_call', 'VCL_return', 'Hit', 'HitMiss', 'Timestamp',
].map((tag) => `-${tag}`).join(',');

export function nginxConfiguration({ dir, pages, port, origin, megabytes, size, user = process.getuid() === 0 ? 'root' : null }) {
  return `# Workers of a master that is root would become www-data and could not reach the socket in our folder.
${user ? `user ${user};` : ''}
${opening({ dir, files: openFiles(), sending: size > SMALL ? ['sendfile on;', CORK, 'tcp_nopush off;'] : [COPIED, 'sendfile off;'] })}
    proxy_cache_path ${pages} levels=1:2 keys_zone=pages:128m max_size=${megabytes}m inactive=1h use_temp_path=off
                     manager_files=10000 manager_threshold=500ms manager_sleep=50ms;
    # As many as may be open, less what connections need.
    open_file_cache max=${openFiles() - 9000} inactive=1h;
    open_file_cache_valid 1h;

    upstream origin {
        server unix:${origin} fail_timeout=0;
        keepalive 256;
        keepalive_requests 10000000;
    }

    server {
        listen 127.0.0.1:${port} backlog=4096;
        proxy_buffer_size 8k;
        proxy_buffers 8 128k;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;
        proxy_cache pages;
        proxy_cache_key $host$request_uri;
        proxy_cache_lock on;
        proxy_cache_lock_timeout 10s;
        proxy_cache_lock_age 10s;
        proxy_cache_use_stale updating error timeout http_500 http_502 http_503 http_504;
        proxy_cache_background_update on;

        location / {
            proxy_pass http://origin;
        }
    }
}
`;
}

/** Varnish would not cache a request with cookies. nginx and Hostler ignore cookies too. */
export function varnishConfiguration({ origin }) {
  return `vcl 4.1;

backend origin {
    .path = "${origin}";
    .max_connections = 1024;
}

sub vcl_recv {
    unset req.http.Cookie;
}
`;
}
