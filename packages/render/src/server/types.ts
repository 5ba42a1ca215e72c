// The types that an application writes and reads: configuration, contexts, plugins. The names are Hypernova's; additions
// are marked "Ours".
import type { IncomingMessage, ServerResponse } from 'node:http';

/** One job, as the client sends it. Other properties are ignored. */
export interface Job {
  name: string;
  data?: unknown;
  metadata?: unknown;
}

/** What `getComponent` and the render function get about a job. */
export interface RenderContext {
  /** The name of the component. A client may have sent none, or a value that is not a string. */
  name: string;
  /** The client's own key of this job in its batch. */
  token: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- only the application knows its props
  props: any;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- only the application knows its metadata
  metadata: any;
  statusCode: number;
  /** In milliseconds. Null until it was rendered. */
  duration: number | null;
  html: unknown;
  /** Sent back as `meta`. Change it, or assign another object. */
  returnMeta: Record<string, unknown>;
  /** The value that was thrown, if any. A render function may set it, and return HTML all the same: then the client gets both. */
  error?: unknown;
  /** Ours: a new UUID, the id for the markup of this job. */
  id: string;
  /** Ours: aborted when the client has left, or when the job has failed for another reason. */
  signal: AbortSignal;
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- only the application knows its props
export type RenderFunction = (props: any, context: RenderContext) => unknown;

/**
 * Returns the function that renders `name`, or a module with such a default export, or a promise of either. Any other value
 * means "not registered".
 */
export type GetComponent = (name: string, context: RenderContext) => unknown;

/** What the plugins of one request share. */
interface PluginContext {
  request: IncomingMessage;
  response: ServerResponse;
  /** One object per batch, for all plugins. */
  batchMeta: Record<string, unknown>;
  /** One map per plugin and batch. */
  data: Map<unknown, unknown>;
}

/** A copy: assigning to a property has no effect, but changing `returnMeta`, `props`, `batchMeta` or `data` has. */
export type JobContext = PluginContext & Omit<RenderContext, 'signal'>;

export interface BatchContext extends PluginContext {
  tokens: string[];
  jobs: Record<string, Job>;
}

/** All events are optional. The batch waits for the asynchronous ones, but for at most 300 ms. */
export interface Plugin {
  initialize?(config: Config, error?: unknown): unknown;
  batchStart?(context: BatchContext): unknown;
  jobStart?(context: JobContext): unknown;
  /** Synchronous. */
  beforeRender?(context: JobContext): void;
  /** Synchronous. */
  afterRender?(context: JobContext): void;
  jobEnd?(context: JobContext): unknown;
  batchEnd?(context: BatchContext): unknown;
  /** Synchronous. */
  onError?(context: JobContext | BatchContext, error: unknown): void;
  shutDown?(config: Config, error?: unknown, request?: IncomingMessage): unknown;
}

export interface Logger {
  log(level: string, message: string, meta?: unknown): unknown;
}

/** The used part of an Express application. */
export interface Application {
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void): unknown;
  post(path: string, listener: (request: IncomingMessage, response: ServerResponse) => void): unknown;
  listen(...args: never[]): unknown;
}

/** The configuration of a renderer, with or without its own server. */
export interface RendererConfig {
  getComponent: GetComponent;
  /** Default: '/batch'. */
  endpoint?: string;
  /** `limit`: the largest inflated body, in bytes or like '1mb'. Default: 1,024,000. */
  bodyParser?: { limit?: number | string };
  /** Runs all jobs of a batch at once instead of one after another. */
  processJobsConcurrently?: boolean;
  plugins?: Plugin[];
  loggerInstance?: Logger;
  /** The lowest level that the built-in logger writes: 'error', 'warn' or 'info'. */
  logger?: { level?: string };
  /** Ours: a batch with more jobs is refused with 413. Default: 10,000. `Infinity` is no limit. */
  maxJobs?: number;
  /** Ours: after this many milliseconds a job that still waits fails. Default: 0, which means never, as `Infinity` does. */
  jobTimeout?: number;
}

/** `App`: what `createApplication` returns. */
export interface Config<App extends Application = Application> extends RendererConfig {
  /** Default: 8080. A text is for `process.env.PORT`. */
  port?: number | string;
  /** Default: '0.0.0.0'. */
  host?: string;
  /** Instead of port and host: the arguments of `listen`. `['/path/to.sock']` is a Unix socket. */
  listenArgs?: unknown[] | null;
  /** For example `() => express()`: an application that gets the endpoint and listens. */
  createApplication?: () => App;
  /** Not used: Hostler sets the number of workers. */
  getCPUs?: (count: number) => number;
  /** Not used: there is always one process. */
  devMode?: boolean;
  /** Not used. Hypernova does not use it either. */
  files?: unknown;
}
