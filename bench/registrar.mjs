// Measures the cost of registered routes: memory of each route, CPU while all are refreshed, and the time until a new one
// is served. node bench/registrar.mjs [10000] [60]: routes, seconds. The program is HOSTLER_BIN or
// target/release/hostler. Writes no file.
import { once } from 'node:events';
import { Agent, createServer, get } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../packages/testkit/eventually.mjs';
import { startHostler } from '../packages/testkit/hostler.mjs';
import { startNats } from '../packages/testkit/nats.mjs';
import { cpuTime, loadAverage, residentBytes } from './lib/procfs.mjs';
import { median } from './lib/statistics.mjs';
import { hostlerBinary } from './lib/tools.mjs';

const routes = Number(process.argv[2] ?? 10_000);
const seconds = Number(process.argv[3] ?? 60);
/** Each route is registered again at this interval, as route-registrar does. */
const INTERVAL_SECONDS = 20;
const NEW_ROUTES = 100;

const nats = await startNats();
if (!nats) process.exit(1);
const member = createServer((request, response) => response.end(request.headers.host));
await once(member.listen(0, '127.0.0.1'), 'listening');

const config = `[server]
threads = 2
[registrar]
nats = "${nats.url}"
start_delay = "0s"
`;
const hostler = await startHostler({ program: hostlerBinary(), config, options: { 'server.access_log': 'off' } });
await eventually('Hostler to be connected to NATS', () => hostler.log.some((line) => line.includes('nats: connected')));

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const ask = (host) => new Promise((resolve, reject) => {
  const request = get({ port: hostler.port, agent, headers: { host } }, (response) => response.resume().on('end', () => resolve(response.statusCode)));
  request.on('error', reject);
});
const registered = async () => (await hostler.status()).registrar.routes;

const publisher = connect(Number(nats.address.split(':')[1]), '127.0.0.1');
publisher.write('CONNECT {"verbose":false}\r\n');
publisher.on('data', (chunk) => String(chunk).includes('PING') && publisher.write('PONG\r\n'));
/** The message of route-emitter: one URI, all fields. */
const message = (route) => JSON.stringify({
  host: '127.0.0.1', port: member.address().port, uris: [`app-${route}.apps.example.test`], app: `11111111-2222-3333-4444-${String(route).padStart(12, '0')}`,
  private_instance_id: `instance-${route}`, private_instance_index: '0', endpoint_updated_at_ns: Date.now() * 1e6, tags: { component: 'route-emitter' },
});
const register = (route) => {
  const payload = message(route);
  publisher.write(`PUB router.register ${Buffer.byteLength(payload)}\r\n${payload}\r\n`);
};

const before = residentBytes(hostler.pid);
const filling = cpuTime([hostler.pid]);
for (let route = 0; route < routes; route += 1) register(route);
while (await registered() < routes) await pause(50);
await pause(500);
const filled = cpuTime([hostler.pid]).scheduled - filling.scheduled;
const perRoute = Math.round((residentBytes(hostler.pid) - before) / routes);

const refreshed = cpuTime([hostler.pid]);
const began = performance.now();
for (let sent = 0; performance.now() - began < seconds * 1000;) {
  const due = ((performance.now() - began) / 1000) * (routes / INTERVAL_SECONDS);
  for (; sent < due; sent += 1) register(sent % routes);
  await pause(10);
}
const took = performance.now() - began;
const refreshing = (cpuTime([hostler.pid]).scheduled - refreshed.scheduled) / 1e6 / took;

const waits = [];
for (let route = routes; route < routes + NEW_ROUTES; route += 1) {
  const host = `app-${route}.apps.example.test`;
  const asked = performance.now();
  register(route);
  while ((await ask(host)) !== 200) await pause(1);
  waits.push(performance.now() - asked);
}

const ms = (value) => `${value.toFixed(1)} ms`;
console.log(`${routes} routes of one member each: ${perRoute} bytes each; registered for the first time with ${ms(filled / 1e6)} of CPU`);
console.log(`refreshed every ${INTERVAL_SECONDS} s (${Math.round(routes / INTERVAL_SECONDS)} messages/s): ${(refreshing * 100).toFixed(2)} % of a core`);
console.log(`a new route is served after ${ms(median(waits))} in the median, ${ms(Math.max(...waits))} at most; load ${loadAverage()}`);

await hostler.stop();
publisher.destroy();
member.close();
agent.destroy();
await nats.stop();
process.exit();
