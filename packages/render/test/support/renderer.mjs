// A renderer on a real port, in the test's own process.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRenderer } from '@hostler/render/server';

export const JSON_TYPE = { 'content-type': 'application/json' };

/** `components`: by name, instead of a `getComponent`. `lines`: the lines of the log. */
export async function serve(t, { components = {}, ...config }) {
  const lines = [];
  const loggerInstance = { log: (level, message) => void lines.push(`${level}: ${message}`) };
  const getComponent = (name) => (Object.hasOwn(components, name) ? components[name] : undefined);
  const server = createServer(createRenderer({ getComponent, loggerInstance, ...config })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, lines, ...client(url) };
}

export function client(url) {
  const post = (body, { path = '/batch', headers = JSON_TYPE, ...options } = {}) =>
    fetch(`${url}${path}`, { method: 'POST', body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body), headers, ...options });
  /** The jobs' results, in a batch that succeeded. */
  const results = async (jobs, options) => {
    const answer = await post(jobs, options);
    const batch = await answer.json();
    if (answer.status !== 200 || !batch.success || batch.error !== null) throw new Error(`${answer.status} ${JSON.stringify(batch)}`);
    return batch.results;
  };
  return { post, results };
}
