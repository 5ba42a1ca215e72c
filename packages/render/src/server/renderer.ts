// Hypernova's endpoint as a plain request listener. Knows no server, no port and no signals.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerEmpty, answerJson, answerMethods, answerNotFound, pathOf } from './answer.js';
import { Batch, type Core } from './batch.js';
import { BadBody, parseLimit, readJson } from './body.js';
import { lines, report } from './error.js';
import { createLog, type Log } from './logger.js';
import { Plugins } from './plugins.js';
import type { Job, RendererConfig } from './types.js';

type Listener = (request: IncomingMessage, response: ServerResponse) => void;
/** `_body`: the body parsers of Express 4 read a body only if it is not set. */
type Parsed = IncomingMessage & { body?: unknown; _body?: boolean };

/** The limit of Hypernova: 1,024,000 bytes, not a megabyte. */
const BODY_LIMIT = 1024 * 1000;
const BODY_PARSER_OPTIONS = ['limit'];
/** Far more than a page has. Without a limit, a body of a megabyte has room for half a million jobs, each with an error in the response. */
const MOST_JOBS = 10_000;

/** The parts of a renderer, for applications with their own routes. */
export interface Renderer {
  readonly log: Log;
  readonly plugins: Plugins;
  readonly endpoint: string;
  /** Puts the parsed body into `request.body`. Answers itself if the body cannot be parsed. */
  parse(request: Parsed, response: ServerResponse, next: () => void): void;
  /** Renders the batch in `request.body`. */
  render(request: Parsed, response: ServerResponse): void;
}

/** A listener for `http.createServer`, or to be called from one. */
export function createRenderer(config: RendererConfig): Listener {
  return listenerOf(renderer(config));
}

/** Matches the path like Express: case and a final slash do not matter. */
export function listenerOf({ endpoint, parse, render }: Renderer): Listener {
  const plain = endpoint.toLowerCase().replace(/(?<=.)\/$/, '');
  return (request, response) => {
    const path = pathOf(request).toLowerCase();
    if (path !== plain && path !== `${plain}/`) return answerNotFound(request, response);
    if (request.method === 'OPTIONS') return answerMethods(response, 'POST');
    if (request.method !== 'POST') return answerNotFound(request, response);
    parse(request, response, () => render(request, response));
  };
}

export function renderer(config: RendererConfig): Renderer {
  if (typeof config?.getComponent !== 'function') {
    throw new TypeError('Hypernova requires a `getComponent` property and it must be a function');
  }
  const { endpoint = '/batch', bodyParser = {}, jobTimeout = 0, maxJobs = MOST_JOBS } = config;
  if (!(maxJobs > 0)) throw new TypeError(`maxJobs must be a number of jobs, or Infinity, not ${JSON.stringify(maxJobs)}`);
  const log = createLog(config);
  const plugins = new Plugins(config.plugins ?? [], log);
  const limit = parseLimit(bodyParser.limit ?? BODY_LIMIT);
  const core: Core = {
    // Read for each job: a plugin may have replaced them when it was initialized.
    get getComponent() {
      return config.getComponent;
    },
    get concurrent() {
      return config.processJobsConcurrently ?? false;
    },
    plugins,
    jobTimeout,
  };
  for (const option of Object.keys(bodyParser)) {
    if (!BODY_PARSER_OPTIONS.includes(option)) log.warn(`bodyParser.${option} is not supported and has no effect`);
  }
  return {
    log,
    plugins,
    endpoint,
    parse(request, response, next) {
      if (isRead(request)) return next();
      readJson(request, limit).then(
        (body) => {
          request.body = body;
          request._body ||= request.readableDidRead;
          next();
        },
        (error) => refuse(error, { request, response, log, plugins, status: error instanceof BadBody ? error.status : 400 }),
      );
    },
    render(request, response) {
      const count = Object.keys(request.body ?? {}).length;
      if (count > maxJobs) {
        const error = new RangeError(`the batch has ${count} jobs, and the limit is ${maxJobs} (maxJobs)`);
        return refuse(error, { request, response, log, plugins, status: 413, text: refusal(error) });
      }
      answer(core, request, response).catch((error) => {
        log.error(`a batch has no answer: ${lines(error)}`); // for example if a component has put an odd value into its context
        if (!response.headersSent) answerEmpty(response, 500);
      });
    },
  };
}

/**
 * Whether earlier middleware has read the body. `body` alone does not tell: the body parsers of Express 4 set it to `{}` also for
 * requests that they do not read.
 */
function isRead(request: Parsed): boolean {
  return request.body !== undefined && request.readableDidRead !== false;
}

async function answer(core: Core, request: Parsed, response: ServerResponse): Promise<void> {
  const batch = new Batch(core, (request.body ?? {}) as Record<string, Job>, { request, response });
  const closed = () => {
    if (!response.writableFinished) batch.abandon(new Error('the client left'));
  };
  // A client may have left while its body was inflated, or in earlier middleware: then the event is over.
  if (response.destroyed) closed();
  else response.once('close', closed);
  const { statusCode, text } = await batch.run();
  if (!response.headersSent) answerJson(response, statusCode, text);
}

/** `text`: the body of the response, which is empty otherwise. */
type Refused = Pick<Renderer, 'log' | 'plugins'> & { request: Parsed; response: ServerResponse; status: number; text?: string };

function refuse(error: unknown, { request, response, log, plugins, status, text }: Refused): void {
  log.info(`a batch was refused with ${status}: ${(error as Error).message}`);
  if (!response.headersSent) {
    if (text === undefined) answerEmpty(response, status);
    else answerJson(response, status, text);
  }
  plugins.tellError(() => [{ request, response, batchMeta: {}, tokens: [], jobs: {}, data: new Map() }, error]);
}

/** A response for a batch that was not begun. With an empty object for `results`, hypernova-ruby would remove the islands from its page. */
function refusal(error: Error): string {
  return JSON.stringify({ success: false, error: report(error), results: null });
}
