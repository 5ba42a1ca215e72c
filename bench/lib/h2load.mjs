// Runs h2load once and parses its figures. Knows h2load, not the server under test.

/** The headers of a browser behind a CDN, as in wrk.lua. HPACK makes them short after the first request of a connection. */
const FIELDS = {
  ':authority': 'shop.example.com',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  accept: 'text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8',
  'accept-language': 'en-GB,en;q=0.8,de;q=0.5',
  'accept-encoding': 'gzip, deflate, br',
  referer: 'https://shop.example.com/rooms?city=ghent&guests=2',
  cookie: 'session=7c9e6679f7425d40e0de944be07fc1f9; consent=1; currency=EUR',
};

/** h2load does not always end when its time is over. After this many more seconds the run fails. */
const LIMIT_S = 30;

/** One thread, closed loop: `connections`, with `streams` requests at once on each. */
export async function h2load(session, { port, path = '/rooms/48213', connections, streams, seconds, cpu }) {
  const headers = Object.entries(FIELDS).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const load = ['-t', '1', '-c', `${connections}`, '-m', `${streams}`, '-D', `${seconds}`];
  const command = ['h2load', ...load, ...headers, `https://127.0.0.1:${port}${path}`];
  return parseH2load(await session.run('timeout', [`${seconds + LIMIT_S}`, ...command], { cpu, name: 'h2load' }));
}

export function parseH2load(text) {
  const numbers = (line) => line?.slice(1).map(Number);
  const finished = numbers(/^finished in ([\d.]+)s/m.exec(text));
  const requests = numbers(/^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout/m.exec(text));
  const codes = numbers(/^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/m.exec(text));
  if (!finished || !requests || !codes) throw new Error(`h2load printed no figures:\n${text}`);
  const protocol = /^Application protocol: (\S+)/m.exec(text)?.[1];
  const [, , , failed, errored, timeout] = requests;
  const [ok, ...others] = codes;
  return { protocol, requests: ok, seconds: finished[0], errors: { status: others.reduce((sum, count) => sum + count, 0), failed, errored, timeout } };
}
