// nginx -> HAProxy, as at Airbnb: nginx serves the clients and buffers, HAProxy queues behind it and limits the requests
// of each worker. They are connected by a Unix socket, which is the cheapest way.
import { startHaproxy } from './haproxy.mjs';
import { startNginx } from './nginx.mjs';
import { untilAnswers } from '../lib/http.mjs';

export const chain = {
  title: 'nginx -> HAProxy',
  packages: ['nginx', 'haproxy'],

  /** `threads`: null is one for each core, for both. `limit`: requests in a second of one client. */
  async start(session, { members, slots, cpu, queueTimeout, probe, threads = 1, limit = null }) {
    const socket = session.path('haproxy.sock');
    const behind = startHaproxy(session, { bind: `unix@${socket}`, members, slots, cpu, queueTimeout, edge: false, threads });
    await untilAnswers(socket, { path: probe, processes: [behind] });
    const { port, started } = await startNginx(session, { upstreams: [socket], cpu, workers: threads ?? 'auto', limit });
    await untilAnswers(port, { path: probe, processes: [started, behind] });
    return { port, processes: [started, behind] };
  },
};
