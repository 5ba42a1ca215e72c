// Bursts through Hostler with the configuration of this folder: every request is answered, and none with a 5xx.
import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, startHostler } from '@hostler/testkit';
import { KEY, LONG_TIMEOUTS, startUpstream } from './kit.mjs';

const upstream = await startUpstream({ latency: 200 });
const listen = `127.0.0.1:${await freePort()}`;
const site = await startHostler({
  file: fileURLToPath(new URL('../hostler.toml', import.meta.url)),
  listen,
  options: inPhotos({ FLICKR_URL: `${upstream.url}/services/rest/`, FLICKR_API_KEY: KEY, ...LONG_TIMEOUTS }),
});
after(() => site.stop());
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
after(() => agent.destroy());

for (const [count, first] of [[80, 10_000], [500, 20_000], [500, 30_000]]) {
  test(`${count} photos at once (${first} and up)`, async () => {
    const before = upstream.calls.length;
    const statuses = await Promise.all(Array.from({ length: count }, (_, i) => status(`/view/${first + i}`)));
    assert.deepEqual(statuses.filter((each) => each !== 302), []);
    assert.equal(upstream.calls.length - before, count);
  });
}

test('the whole chain: Hostler, the service, Hostler again, the stand-in and its pictures', async () => {
  const whole = await startHostler({
    file: fileURLToPath(new URL('../hostler.toml', import.meta.url)),
    listen: `127.0.0.1:${await freePort()}`,
  });
  after(() => whole.stop());
  const page = await fetch(`${whole.url}/view/`);
  assert.match(await page.text(), /Flickr <span>Original/);
  const picture = await fetch(`${whole.url}/services/pictures/2610_o.svg`);
  assert.equal(picture.headers.get('content-type'), 'image/svg+xml');
});

function inPhotos(env) {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [`pools.photos.env.${name}`, value]));
}

function status(path) {
  return new Promise((resolve, reject) => {
    get(site.url + path, { agent }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
      response.on('error', reject);
    }).on('error', reject);
  });
}
