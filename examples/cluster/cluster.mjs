// The machines of the example, on loopback addresses of one machine: a real nats-server, two app hosts, two edges. Knows
// no clients.
import { fileURLToPath } from 'node:url';
import { eventually, startHostler, startNats } from '@hostler/testkit';

export const HOST = 'shop.example.com';

const file = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Starts all of them and waits until they serve. Undefined without nats-server, with a printed message. */
export async function startCluster() {
  const nats = await startNats();
  if (!nats) return undefined;
  const started = [];
  const start = async (kind, address, env = {}) => {
    const options = { 'registrar.nats': nats.url, 'server.admin': `${address}:0` };
    const machine = await startHostler({ file: file(`${kind}.toml`), listen: `${address}:0`, options, env });
    started.push(machine);
    return machine;
  };
  const app = (name, address) => start('app', address, { MACHINE: name });
  const stop = async () => {
    await Promise.all(started.map((machine) => machine.stop()));
    await nats.stop();
  };
  try {
    const edges = await Promise.all(['127.0.0.21', '127.0.0.22'].map((address) => start('edge', address)));
    const apps = await Promise.all([app('app1', '127.0.0.11'), app('app2', '127.0.0.12')]);
    const cluster = { nats, edges, apps, app, stop };
    await eventually('both edges to know both app hosts', async () => {
      const known = await Promise.all(edges.map(members));
      return known.every((list) => list.length === apps.length);
    });
    return cluster;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The addresses of the app hosts that an edge knows. */
export async function members(edge) {
  const answer = await fetch(`${edge.admin}/routes`);
  const routes = await answer.json();
  return (routes[HOST] ?? []).map(({ address }) => address);
}
