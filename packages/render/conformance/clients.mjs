// Those who ask: exact HTTP, hypernova-client and pyramid-hypernova, both unmodified. Each tells what it got as plain data. Knows no cases.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Of the moment or the connection, or of Express alone. */
const NOT_COMPARED = ['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'x-powered-by'];

/** One exchange. `died` where the connection was closed without an answer. */
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
    const content = await text(answer);
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

/** What a page and its plugins get of hypernova-client. `jobs`: data by name, which is how it is called. */
export async function hypernovaClient({ require }, url, jobs) {
  const Renderer = require('hypernova-client');
  const errors = [];
  let successes = 0;
  const witness = {
    // A failure to connect is an Error, with the port in it; what a server tells is an object.
    onError: (error) => errors.push(error instanceof Error ? { code: error.code ?? error.name } : error),
    onSuccess: () => (successes += 1),
    afterResponse: (results) => results,
  };
  // None: a busy machine is slow, and what is compared is not the time.
  const renderer = new Renderer({ url: `${url}/batch`, plugins: [witness], config: { timeout: 0 } });
  const results = await renderer.render(jobs);
  const html = Object.fromEntries(Object.entries(results).map(([name, result]) => [name, result.html]));
  return { html, errors, successes };
}

/** What a page and its plugins get of pyramid-hypernova, for several batches: its interpreter takes a while to start. */
export async function pyramidHypernova({ folder, python }, batches) {
  const child = spawn(python, ['client.py'], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(batches.map(({ url, jobs }) => ({ url: `${url}/batch`, jobs }))));
  const [answer, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (code !== 0) throw new Error(`client.py failed (${code})`);
  return JSON.parse(answer);
}
