// `hypernova(config, onServer)`: a renderer that listens, and stops gracefully. Knows nothing of Hostler, which runs it
// like any Node app.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { lines } from './error.js';
import { listenerOf, renderer, type Renderer } from './renderer.js';
import { catchStrayErrors } from './stray.js';
import type { Application, Config } from './types.js';

export type OnServer<App extends Application = Application> = (app: App, process: NodeJS.Process) => void;

/** How long running requests may take after the process was told to stop, in milliseconds. */
const FAREWELL = 30_000;
/** Plugins find these in the configuration where the application has set nothing, as in Hypernova. */
const DEFAULTS = { bodyParser: { limit: 1_024_000 }, devMode: false, endpoint: '/batch', files: [], logger: {}, plugins: [], port: 8080, host: '0.0.0.0' };
const EXPRESS_ONLY = ['use', 'post', 'get', 'put', 'delete', 'all', 'set', 'enable', 'disable', 'engine', 'route'];

/** Starts the server and returns the application, as Hypernova does. */
export function hypernova<App extends Application = Application>(config: Config<App>, onServer?: OnServer<App>): App {
  // Plugins get the same object, and may replace `getComponent` in it, as in Hypernova.
  const whole: Config = { ...DEFAULTS, ...config };
  const parts = renderer(whole);
  const { log } = parts;
  if (config.getCPUs || config.devMode !== undefined) {
    log.info('getCPUs and devMode have no effect: this is one process, and its supervisor decides how many there are');
  }
  const app = config.createApplication ? checked(config.createApplication()) : (plainApplication(parts) as App);
  if (config.createApplication) app.use(parts.parse);
  onServer?.(app, process);
  if (config.createApplication) app.post(parts.endpoint, parts.render);

  whole.listenArgs ??= [whole.port ?? DEFAULTS.port, whole.host ?? DEFAULTS.host];
  const service = new Service(whole, parts);
  services.push(service);
  catchStrayErrors({
    late: (owner, error) => log.error(`uncaught, from ${owner.label}: ${lines(error)}`),
    tolerated: (error) => log.error(`a rejection that belongs to no job, and that the application lets pass: ${lines(error)}`),
    unknown: (error) => {
      log.error(`an error that belongs to no job; this process ends, because its state is unknown: ${lines(error)}`);
      void endProcess(1, error);
    },
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info(`${signal}: finishing running requests`);
      void endProcess(0);
    });
  }
  service.start(app).catch((error) => {
    log.error(`cannot start: ${lines(error)}`);
    void endProcess(1, error);
  });
  return app;
}

/** The services of this process. It ends when all have finished. */
const services: Service[] = [];
let isEnding = false;

/** Finishes running requests, tells the plugins, and ends the process. */
async function endProcess(code: number, error: unknown = null): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  setTimeout(() => process.exit(code), FAREWELL).unref();
  await Promise.all(services.map((service) => service.stop(error)));
  process.exit(code);
}

class Service {
  readonly #config: Config;
  readonly #parts: Pick<Renderer, 'log' | 'plugins'>;
  readonly #underWay = new Set<ServerResponse>();
  #server: Server | undefined;
  #stopping = false;

  constructor(config: Config, parts: Pick<Renderer, 'log' | 'plugins'>) {
    this.#config = config;
    this.#parts = parts;
  }

  async start(app: Application): Promise<void> {
    await this.#parts.plugins.tell('initialize', () => [this.#config]);
    if (this.#stopping) return;
    const args = this.#config.listenArgs as never[];
    const server = app.listen(...args) as Server;
    this.#server = server;
    server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => this.#follow(response));
    await new Promise<void>((resolve, reject) => server.once('listening', resolve).once('error', reject));
    this.#parts.log.info('Connected', { listen: args });
  }

  /** Finishes running requests, and tells the plugins. */
  async stop(error: unknown): Promise<void> {
    this.#stopping = true;
    await this.#closed();
    try {
      await this.#parts.plugins.tell('shutDown', () => [this.#config, error]);
    } catch (thrown) {
      this.#parts.log.error(`a plugin's shutDown threw: ${lines(thrown)}`);
    }
  }

  #closed(): Promise<void> {
    const server = this.#server;
    if (!server?.listening) return Promise.resolve();
    return new Promise((resolve) => {
      server.close(() => resolve());
      server.closeIdleConnections();
      for (const response of this.#underWay) this.#makeLast(response);
    });
  }

  #follow(response: ServerResponse): void {
    this.#underWay.add(response);
    response.once('close', () => this.#underWay.delete(response));
    if (this.#stopping) this.#makeLast(response);
  }

  /** Otherwise a kept-alive connection would keep the server open after its response. */
  #makeLast(response: ServerResponse): void {
    response.shouldKeepAlive = false;
    response.once('close', () => this.#server?.closeIdleConnections());
  }
}

function checked<App extends Application>(app: App): App {
  const complete = typeof app === 'function' && ['use', 'post', 'listen'].every((name) => typeof (app as Application)[name as keyof Application] === 'function');
  if (!complete) {
    throw new TypeError('`createApplication` must return a valid express instance with `use`, `post`, and `listen` methods');
  }
  return app;
}

/** An application with the endpoint only. Its other methods explain how to use an application of your own. */
function plainApplication(parts: Renderer): Application {
  const listener = listenerOf(parts);
  const refusals = EXPRESS_ONLY.map((name) => {
    const refuse = () => {
      throw new TypeError(`app.${name} needs Express: give \`createApplication: () => express()\` in the configuration`);
    };
    return [name, refuse];
  });
  const listen = (...args: never[]) => createServer(listener).listen(...args);
  return Object.assign(listener, Object.fromEntries(refusals), { listen }) as unknown as Application;
}
