// nginx -> HAProxy, as at Airbnb: nginx meets the clients and buffers, HAProxy queues behind it and gives each worker so
// many requests at once. Between the two stands a Unix socket, the cheapest way there is.
import { startHaproxy } from './haproxy.mjs';
import { startNginx } from './nginx.mjs';
import { untilAnswers } from '../lib/http.mjs';

export const chain = {
  title: 'nginx -> HAProxy',
  packages: ['nginx', 'haproxy'],

  async start(session, { members, slots, cpu, queueTimeout, probe }) {
    const socket = session.path('haproxy.sock');
    const behind = startHaproxy(session, { bind: `unix@${socket}`, members, slots, cpu, queueTimeout, edge: false });
    await untilAnswers(socket, { path: probe, processes: [behind] });
    const { port, started } = await startNginx(session, { upstreams: [socket], cpu });
    await untilAnswers(port, { path: probe, processes: [started, behind] });
    return { port, processes: [started, behind] };
  },
};
