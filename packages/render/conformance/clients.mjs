// The clients: exact HTTP, and the unmodified hypernova-client and pyramid-hypernova. Each returns its result as plain
// data. Knows no cases.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';

/** Headers that depend on the time, on the connection, or on Express only. */
const NOT_COMPARED = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'x-powered-by'];

/** One exchange. `died`: the connection was closed without a response. */
export async function raw(url, { method = 'POST', path = '/batch', headers = { 'content-type': 'application/json' }, body = '', chunked = false }) {
  const length = chunked ? {} : { 'content-length': Buffer.byteLength(body) };
  const asked = request(`${url}${path}`, { method, headers: { ...headers, ...(method === 'GET' ? {} : length) }, agent: false });
  let continued = false;
  asked.on('continue', () => {
    continued = true;
    asked.end(body);
  });
  if (headers.expect) asked.flushHeaders();
  else asked.end(body);
  try {
    const [answer] = await once(asked, 'response');
    const content = await text(answer.headers['content-encoding'] === 'gzip' ? answer.pipe(createGunzip()) : answer);
    const headers = Object.entries(answer.headers).filter(([name]) => !NOT_COMPARED.includes(name)).sort();
    const body = parsed(answer.headers['content-type'], content);
    return { status: answer.statusCode, reason: answer.statusMessage, headers: Object.fromEntries(headers), continued, body };
  } catch (error) {
    return { died: error.code };
  }
}

function parsed(type, content) {
  return type?.startsWith('application/json') ? JSON.parse(content) : content;
}

/** What a page and its plugins get from hypernova-client. `jobs`: data by name, as the client is called. */
export async function hypernovaClient({ require }, url, jobs) {
  const Renderer = require('hypernova-client');
  const errors = [];
  let successes = 0;
  const witness = {
    // A failed connection gives an Error with the port in it. A response of a server gives an object.
    onError: (error) => errors.push(error instanceof Error ? { code: error.code ?? error.name } : error),
    onSuccess: () => (successes += 1),
    afterResponse: (results) => results,
  };
  // No timeout: a busy machine is slow, and the time is not compared.
  const renderer = new Renderer({ url: `${url}/batch`, plugins: [witness], config: { timeout: 0 } });
  const results = await renderer.render(jobs);
  const html = Object.fromEntries(Object.entries(results).map(([name, result]) => [name, result.html]));
  return { html, errors, successes };
}

/** What a page and its plugins get from pyramid-hypernova, for several batches, because its interpreter takes a while to start. */
export async function pyramidHypernova({ folder, python }, batches) {
  const child = spawn(python, ['client.py'], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(batches.map(({ url, jobs }) => ({ url: `${url}/batch`, jobs }))));
  const [answer, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (code !== 0) throw new Error(`client.py failed (${code})`);
  return JSON.parse(answer);
}
