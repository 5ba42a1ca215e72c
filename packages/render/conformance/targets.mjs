// The two compared services, and a Hostler without workers: each in its own process, with the same components. Knows no
// cases.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually, freePort, startHostler } from '@hostler/testkit';

/** npm hypernova alone, started as in its documentation. `died`: its exit code after its end. `more`: variables for the service. */
export async function startReference({ folder }, more = {}) {
  const port = await freePort();
  const env = { ...process.env, ...service('hypernova/server', 'hypernova-react'), ...more, PORT: String(port) };
  const child = spawn(process.execPath, ['service.cjs'], { cwd: folder, env, stdio: 'ignore' });
  const exit = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await eventually('hypernova to answer', async () => (await fetch(url)).status === 404);
  return {
    url,
    died: async () => (await exit)[0],
    async stop() {
      child.kill('SIGKILL');
      await exit;
    },
  };
}

/** Hostler, with @hostler/render in its workers. */
export function startOurs({ folder }, more = {}) {
  return startHostler({
    config: `
      [pools.render]
      command = "node service.cjs"
      cwd = ${JSON.stringify(folder)}
      workers = 2
      queue.timeout = "60s" # a worker that has ended is replaced, however slow this machine is
      env = ${inline({ ...service('@hostler/render/server', '@hostler/render/react'), ...more })}
      [[routes]]
      match = "*"
      pool = "render"
      fallback = "hypernova"`,
  });
}

/** Hostler without any worker. */
export async function startEdge() {
  return startHostler({
    config: `
      [pools.render]
      members = ["127.0.0.1:${await freePort()}"]
      queue.timeout = "50ms"
      [[routes]]
      match = "/batch"
      pool = "render"
      fallback = "hypernova"`,
  });
}

/** The service with its own Express application. */
export const OWN_EXPRESS = { OWN_EXPRESS: '1' };

function service(server, bindings) {
  return { SERVER: server, BINDINGS: bindings, NODE_ENV: 'production' };
}

function inline(table) {
  return `{ ${Object.entries(table).map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join(', ')} }`;
}
