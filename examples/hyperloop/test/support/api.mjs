// The API under a test's control: the real one behind a gate that can hold a response, change it, or be closed.
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import { startProcess } from './process.mjs';

/** Starts both. `url` is the value for API_URL. */
export async function startApi(t) {
  const real = await startProcess(t, { file: '../../../express-api/server.js', env: { REVIEWS_TAKE: '0', CALENDAR_TAKES: '0' } });
  const api = new Api(real.url);
  await api.open();
  t.after(() => api.close());
  return api;
}

class Api {
  #real;
  #server;
  #port = 0;
  #rules = new Map();
  /** The requested paths, below /api. */
  asked = [];

  constructor(real) {
    this.#real = real;
  }

  get url() {
    return `${this.origin}/api`;
  }

  get origin() {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Opens again at the same address. */
  async open() {
    this.#server = createServer((request, response) => this.#answer(request, response)).listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = this.#server.address().port;
  }

  async close() {
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  /** Holds requests for a path until `release()`. `arrived` and `left` are about the first one. */
  hold(path) {
    const arrived = withResolvers();
    const left = withResolvers();
    const released = withResolvers();
    this.#rules.set(path, async (request, response) => {
      response.once('close', () => response.writableFinished || left.resolve());
      arrived.resolve();
      await released.promise;
      this.#pass(request, response);
    });
    return {
      arrived: arrived.promise,
      left: left.promise,
      release: () => {
        this.#rules.delete(path);
        released.resolve();
      },
    };
  }

  /** Answers a path with another response. */
  alter(path, { status = 200, body }) {
    this.#rules.set(path, (request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)));
  }

  /** Closes the connection at the first request for a path, once. */
  breakOnce(path) {
    this.#rules.set(path, (request) => {
      this.#rules.delete(path);
      request.socket.destroy();
    });
  }

  #answer(request, response) {
    const path = request.url.replace(/^\/api/, '');
    this.asked.push(path);
    const rule = this.#rules.get(path) ?? ((...both) => this.#pass(...both));
    rule(request, response);
  }

  #pass(request, response) {
    if (response.destroyed) return;
    const onward = send(this.#real + request.url, { headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.once('error', () => response.destroy());
    onward.end();
  }
}

/** Promise.withResolvers, which Node 20 does not have. */
function withResolvers() {
  const parts = {};
  parts.promise = new Promise((resolve) => (parts.resolve = resolve));
  return parts;
}
