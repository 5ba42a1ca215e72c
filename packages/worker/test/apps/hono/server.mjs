// Hono on its Node server.
import { serve } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';

const app = new Hono();
const server = serve({ fetch: app.fetch, port: 3000 }, (info) => {
  console.log(`listening at http://${info.address}:${info.port}`);
});

app.get('/', (c) => c.json({ app: 'hono', ip: getConnInfo(c).remote.address, port: server.address().port }));
