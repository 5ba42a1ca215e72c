// Hostler in front of members, with and without location headers. Knows how to configure this and checks it. Does not
// measure its cost.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { launch } from './hostler.mjs';
import { stopAll } from './renders.mjs';
import { get, untilAnswers } from '../lib/http.mjs';
import { data } from '../lib/lookups.mjs';

/** Everything else is the same: a trusted proxy names the client, and the name is passed on. */
export const GEO = {
  plain: { title: 'without geo_headers', start: (session, settings) => start(session, settings) },
  told: { title: 'with geo_headers', start: (session, settings) => start(session, { ...settings, told: true }) },
};

async function start(session, { members, cpu, probe, told = false }) {
  const pool = [`members = ${JSON.stringify(members.map((path) => `unix:${path}`))}`, 'concurrency = 64'];
  const more = told ? `[geo]\ndatabases = ${JSON.stringify(data.geo)}\n\n[[routes]]\nmatch = "*"\npool = "web"\ngeo_headers = true\n` : '';
  const launched = await launch(session, { pool, queueTimeout: '5s', threads: 1, trusted: ['127.0.0.1'], more }, { cpu });
  await untilAnswers(launched.port, { path: probe, processes: launched.processes });
  return launched;
}

/** Checks that members get the location of `visitor` from one and not from the other. Otherwise the comparison would be wrong. */
export async function checkTold(session, visitor) {
  const member = session.path('told.sock');
  const server = createServer((request, response) => response.end(JSON.stringify(request.headers)));
  await new Promise((resolve) => server.listen(member, resolve));
  for (const [name, { start: begin }] of Object.entries(GEO)) {
    const { port, processes } = await begin(session, { members: [member], probe: '/' });
    const seen = JSON.parse((await get(port, '/', { headers: { 'x-forwarded-for': visitor } })).body);
    assert.match(seen['x-forwarded-for'], new RegExp(`^${visitor}`));
    assert.equal(typeof seen['x-geo-city'], name === 'told' ? 'string' : 'undefined', `${name}: X-Geo-City is ${seen['x-geo-city']}`);
    await stopAll(session, processes);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
