// The shapes that an application writes and reads: configuration, contexts, plugins. Hypernova's names, plus what is said to be ours.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** One job, as the client sends it. Whatever else it holds is ignored. */
export interface Job {
  name: string;
  data?: unknown;
  metadata?: unknown;
}

/** What `getComponent` and the render function get to know of a job. */
export interface RenderContext {
  /** The component asked for. A client may have sent none, or something that is no text. */
  name: string;
  /** The client's own key of this job within its batch. */
  token: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the application knows its props, nobody else does
  props: any;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- likewise
  metadata: any;
  statusCode: number;
  /** Milliseconds; null until it has been rendered. */
  duration: number | null;
  html: unknown;
  /** Sent back as `meta`. Change it, or put another object here. */
  returnMeta: Record<string, unknown>;
  /** What was thrown, once something was. */
  error?: unknown;
  /** Ours: a fresh UUID, the id that the markup of this job should have. */
  id: string;
  /** Ours: aborted when the client has gone away, or the job has failed otherwise before its end. */
  signal: AbortSignal;
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the application knows its props, nobody else does
export type RenderFunction = (props: any, context: RenderContext) => unknown;

/** Gives the function that renders `name`, or a module whose default export is one, or a promise of either; anything else is "not registered". */
export type GetComponent = (name: string, context: RenderContext) => unknown;

/** What the plugins of one request share, whatever it is about. */
interface PluginContext {
  request: IncomingMessage;
  response: ServerResponse;
  /** One object a batch, for all plugins. */
  batchMeta: Record<string, unknown>;
  /** One map a plugin and batch. */
  data: Map<unknown, unknown>;
}

/** A copy: to assign has no effect, to change `returnMeta`, `props`, `batchMeta` or `data` has. */
export type JobContext = PluginContext & Omit<RenderContext, 'signal'>;

export interface BatchContext extends PluginContext {
  tokens: string[];
  jobs: Record<string, Job>;
}

/** All events are optional. Those that may be asynchronous are waited for, but not for longer than 300 ms. */
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

/** As much of an Express application as is used. */
export interface Application {
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void): unknown;
  post(path: string, listener: (request: IncomingMessage, response: ServerResponse) => void): unknown;
  listen(...args: never[]): unknown;
}

/** What a renderer needs, with or without a server of its own. */
export interface RendererConfig {
  getComponent: GetComponent;
  /** '/batch' */
  endpoint?: string;
  /** `limit`: of the body once inflated, in bytes or as '1mb'; 1,024,000. */
  bodyParser?: { limit?: number | string };
  /** All jobs of a batch at once, instead of one after another. */
  processJobsConcurrently?: boolean;
  plugins?: Plugin[];
  loggerInstance?: Logger;
  /** The least level that the built-in logger writes: 'error', 'warn' or 'info'. */
  logger?: { level?: string };
  /** Ours: milliseconds until a job that is still waiting for something fails; 0, the default, is never. */
  jobTimeout?: number;
}

export interface Config extends RendererConfig {
  /** 8080 */
  port?: number;
  /** '0.0.0.0' */
  host?: string;
  /** In place of port and host: what `listen` takes; `['/path/to.sock']` is a Unix socket. */
  listenArgs?: unknown[] | null;
  /** Such as `() => express()`: an application that gets the endpoint and is listened with. */
  createApplication?: () => Application;
  /** Not used: Hostler says how many workers there are. */
  getCPUs?: (count: number) => number;
  /** Not used: there is one process here in any case. */
  devMode?: boolean;
  /** Not used, nor is it by Hypernova. */
  files?: unknown;
}
