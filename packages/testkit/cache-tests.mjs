// Runs the suite http-cache-tests (cache-tests.fyi) against a cache: its origin, its cases, and a client of our own.
// Knows no cache.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The cases wait for 3 seconds at some points. Running this many at once takes the time of one. */
const AT_ONCE = 60;

/** The folder in TEST_HTTP_CACHE_TESTS, or the one that `node scripts/tools.mjs` has unpacked. Otherwise undefined, and a message is printed. */
export async function cacheTests() {
  const named = process.env.TEST_HTTP_CACHE_TESTS;
  if (named && !existsSync(named)) throw new Error(`TEST_HTTP_CACHE_TESTS: there is no folder ${named}`);
  const folder = [named, join(ROOT, 'target/tools/http-cache-tests')].find((each) => each && existsSync(each));
  if (!folder) {
    console.warn('!!! SKIPPED: http-cache-tests is missing (node scripts/tools.mjs fetches it)');
    return undefined;
  }
  return CacheTests.load(folder);
}

class CacheTests {
  #folder;
  #cases;
  #client;
  #config;

  static async load(folder) {
    const part = (path) => import(join(folder, path));
    const [suites, client, config] = await Promise.all([part('tests/index.mjs'), part('client/test.mjs'), part('client/config.mjs')]);
    const tests = new CacheTests();
    const isForUs = (each) => !each.browser_only;
    tests.#cases = new Map(suites.default.flatMap((suite) => suite.tests.filter(isForUs).map((each) => [each.id, each])));
    Object.assign(tests, { folder });
    tests.#folder = folder;
    tests.#client = client;
    tests.#config = config;
    return tests;
  }

  /** The command of the suite's origin, with its environment. */
  get origin() {
    const env = { npm_config_protocol: 'http', npm_config_port: '8000', npm_config_pidfile: '/dev/null' };
    return { command: [process.execPath, join(this.#folder, 'server/server.mjs')], env };
  }

  /** The ids of the cases of a kind: `required`, `optimal` or `check`. */
  ids(kind) {
    return [...this.#cases.values()].filter((each) => (each.kind ?? 'required') === kind).map(({ id }) => id);
  }

  /** Runs cases against the cache at `url`. The result has `true` by id, or the failure as `Kind: words`. */
  async run(url, ids) {
    const agent = new Agent({ keepAlive: true });
    this.#config.setBaseUrl(url);
    this.#config.setFetch((...args) => fetchPlainly(agent, ...args));
    const results = {};
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE);
      await Promise.all(some.map((id) => this.#client.makeCacheTest(structuredClone(this.#cases.get(id)))));
      for (const id of some) {
        const result = this.#client.testResults[id];
        results[id] = result === true || result.join(': ');
        // The suite refuses to run a case twice.
        delete this.#client.testResults[id];
      }
    }
    agent.destroy();
    return results;
  }
}

/**
 * A plain client. The platform's `fetch` adds its own `Cache-Control`, joins and drops lines, and does not accept status 999;
 * the cases test all of this.
 */
async function fetchPlainly(agent, url, { method = 'GET', headers = [], body } = {}) {
  const lines = [['Host', new URL(url).host], ...headers];
  if (body !== undefined) lines.push(['Content-Length', Buffer.byteLength(body)]);
  const sent = request(url, { agent, method, headers: lines.flat() });
  sent.end(body);
  const [answer] = await once(sent, 'response');
  const fields = new Map();
  for (let at = 0; at < answer.rawHeaders.length; at += 2) {
    const [name, value] = [answer.rawHeaders[at].toLowerCase(), answer.rawHeaders[at + 1]];
    fields.set(name, fields.has(name) ? `${fields.get(name)}, ${value}` : value);
  }
  const of = (name) => name.toLowerCase();
  const view = { get: (name) => fields.get(of(name)) ?? null, has: (name) => fields.has(of(name)), [Symbol.iterator]: () => fields.entries() };
  const text = await answer.setEncoding('utf8').toArray();
  return { status: answer.statusCode, headers: Object.assign(view, { forEach: (each) => fields.forEach(each) }), text: async () => text.join('') };
}
