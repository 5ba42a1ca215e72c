// A running Hostler: the real program with its own configuration, on free ports. Knows it only from outside.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The program under test: HOSTLER_BIN, or the last one that cargo has built for the tests. */
export function hostlerProgram() {
  const program = process.env.HOSTLER_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug', 'hostler');
  if (!existsSync(program)) throw new Error(`${program} is missing; build it: cargo build -p hostler`);
  return program;
}

/**
 * Starts Hostler and waits until its workers are ready.
 *
 * `run`: the flags and the app of `hostler run`, such as `['--watch', '--', 'node', 'app.cjs']`, in the folder `cwd`. Otherwise:
 * `config`: the text of a configuration, whose [server] section gets free ports; or `file`: the path of one, whose addresses
 * are replaced by free ports. `listen`: the address, for workers that must know it before (see `freePort`). `options`: values
 * by key ("server.drain_timeout"). `env`: variables of its environment. `program`: another build of Hostler.
 */
export async function startHostler({ run, cwd = ROOT, config, file, listen = '127.0.0.1:0', options = {}, env = {}, ready = true, program = hostlerProgram() }) {
  const folder = file || run ? undefined : await mkdtemp(join(tmpdir(), 'hostler-test-'));
  if (folder) await writeFile(join(folder, 'hostler.toml'), config);
  const set = { 'server.listen': listen, 'server.admin': '127.0.0.1:0', 'server.access_log': 'json', ...options };
  const flags = Object.entries(set).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const command = run ? ['run', ...flags, ...run] : ['start', '-c', file ?? join(folder, 'hostler.toml'), ...flags];
  const child = spawn(program, command, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const site = new Site(child, folder);
  await site.listening();
  if (ready) await site.ready();
  return site;
}

class Site {
  #child;
  #folder;
  #ended;
  log = [];

  constructor(child, folder) {
    this.#child = child;
    this.#folder = folder;
    this.#ended = once(child, 'exit');
    // It must not outlive a test or a benchmark that fails.
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    this.#ended.then(() => process.off('exit', kill));
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.log.push(line));
    }
  }

  get pid() {
    return this.#child.pid;
  }

  /** Its URL, without a final slash. */
  get url() {
    return this.#after('listening on ');
  }

  /** The port of its URL. */
  get port() {
    return Number(new URL(this.url).port);
  }

  get admin() {
    return this.#after('live page on ')?.replace(/\/$/, '');
  }

  async status() {
    const answer = await fetch(`${this.admin}/status`, { headers: { accept: 'application/json' } });
    return answer.json();
  }

  /** The line of the access log about a path. */
  logged(path) {
    return eventually(`a line about ${path} in the access log`, () => {
      const line = this.log.find((each) => each.includes('"event":"access"') && each.includes(JSON.stringify(path)));
      return line && JSON.parse(line);
    });
  }

  async listening() {
    await this.#until('listen', () => this.url && this.admin);
  }

  /** Waits until all workers of all pools are ready. */
  async ready() {
    await this.#until('have all its workers ready', async () => {
      const { pools } = await this.status();
      return pools.every(({ workers = [] }) => workers.every(({ state }) => state === 'ready'));
    });
  }

  async stop() {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGTERM');
    await this.#ended;
    if (this.#folder) await rm(this.#folder, { recursive: true });
  }

  async #until(what, look) {
    await eventually(`Hostler to ${what}`, async () => {
      if (this.#child.exitCode !== null) throw new Error(`Hostler ended (${this.#child.exitCode}): ${this.log.slice(-20).join('\n')}`);
      return look();
    });
  }

  #after(words) {
    const line = this.log.find((each) => each.includes(`${words}http://`));
    return line && /http:\/\/[^\s"/]+/.exec(line.slice(line.indexOf(words)))[0];
  }
}
