// One job: its context, its render, and its result as text. Knows nothing of other jobs, plugins or HTTP.
import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { startLimit } from '../time-limit.js';
import { noHtml, notRegistered, report, textOf, type ErrorReport } from './error.js';
import { isThenable } from './plugins.js';
import type { Owner } from './stray.js';
import type { GetComponent, RenderContext, RenderFunction } from './types.js';

class Context implements RenderContext {
  statusCode = 200;
  duration: number | null = null;
  html: unknown = null;
  returnMeta: Record<string, unknown> = {};
  readonly id = randomUUID();
  readonly #job: RenderJob;

  constructor(readonly token: string, public name: string, public props: unknown, public metadata: unknown, job: RenderJob) {
    this.#job = job;
  }

  /** A getter on the prototype: copies of the context for plugins do not need it, and most components never use it. */
  get signal(): AbortSignal {
    return this.#job.signal;
  }
}

export class RenderJob implements Owner {
  readonly context: RenderContext;
  #error: ErrorReport | null = null;
  /** Ends the current wait, if there is one. */
  #interrupt: ((error: unknown) => void) | undefined;
  /** Made at the first use, because it would cost more than everything else here. */
  #aborter: AbortController | undefined;
  /** Aborts the signal for this job: a client that leaves is no part of a job, but what a listener then throws is. */
  #abort: ((why: unknown) => void) | undefined;
  /** A failure that came from outside the current step. If no step is running, the next one finds it. */
  #failure: { error: unknown } | undefined;
  /** Rendered or failed. After that, nothing can fail it. */
  #ended = false;

  /** `job` is the value that the client sent under this token. It may be anything. */
  constructor(token: string, job: unknown) {
    const { name, data, metadata } = (job ?? {}) as Record<string, unknown>;
    this.context = new Context(token, name as string, data, metadata, this);
  }

  get label(): string {
    const { token, name } = this.context;
    return `job ${JSON.stringify(token)} (component ${JSON.stringify(textOf(name))}), which has ended`;
  }

  /** Aborted when the job fails while it is rendered, because the result is not needed any more. */
  get signal(): AbortSignal {
    if (!this.#aborter) {
      const aborter = new AbortController();
      this.#aborter = aborter;
      this.#abort = AsyncResource.bind((why: unknown) => aborter.abort(why));
    }
    if (this.#failure) this.#aborter.abort(this.#failure.error);
    return this.#aborter.signal;
  }

  /** Fails the job. For errors that its code throws later, in a timer or in a promise that is not awaited. */
  fail(error: unknown): boolean {
    if (this.#ended || this.#failure) return false;
    this.#failure = { error };
    this.#interrupt?.(error);
    this.#abort?.(error);
    return true;
  }

  async render(getComponent: GetComponent, timeout: number): Promise<void> {
    const { context } = this;
    const began = performance.now();
    let hasRun = false;
    const timer = startLimit(timeout, () => this.fail(new Error(`the job took longer than ${timeout} ms`)));
    try {
      let found = this.#step(() => getComponent(context.name, context));
      hasRun = true;
      if (isThenable(found)) found = await this.#waited(found);
      const render = renderFunction(found);
      if (!render) {
        context.statusCode = 404;
        throw notRegistered(context.name);
      }
      let html = this.#step(() => render(context.props, context));
      if (isThenable(html)) html = await this.#waited(html);
      if (!html || isOmitted(html)) throw noHtml();
      context.html = html;
    } finally {
      this.#ended = true;
      // As in Hypernova: null if getComponent itself has thrown.
      if (hasRun) context.duration = performance.now() - began;
      clearTimeout(timer);
    }
  }

  record(error: unknown): void {
    const { context } = this;
    context.statusCode = context.statusCode === 200 ? 500 : context.statusCode;
    context.error = error;
    this.#error = report(error);
  }

  /** Throws if plugins or the component have left a value that JSON cannot express. */
  toText(): string {
    const { name, html = null, returnMeta, duration, statusCode, error } = this.context;
    return JSON.stringify({
      name,
      html,
      meta: isOmitted(returnMeta) ? {} : (returnMeta ?? {}),
      duration,
      statusCode,
      success: html !== null,
      // As in Hypernova, a component that renders something else in place of what failed can tell of the error.
      error: this.#error ?? (error ? report(error) : null),
    });
  }

  /** Replaces a result that JSON cannot express. */
  forget(error: unknown): void {
    this.context.html = null;
    this.context.returnMeta = {};
    this.record(error);
  }

  #step(step: () => unknown): unknown {
    if (this.#failure) throw this.#failure.error;
    return step();
  }

  /** The result of `work`, unless something else fails the job before. */
  #waited(work: PromiseLike<unknown>): Promise<unknown> {
    const result = new Promise((resolve, reject) => {
      this.#interrupt = reject;
      work.then(resolve, reject);
    });
    return result.finally(() => (this.#interrupt = undefined));
  }
}

/** Whether JSON leaves out a field with this value: a function, a symbol, or what `toJSON` makes of it. Clients read all fields. */
function isOmitted(value: unknown): boolean {
  return typeof value !== 'string' && JSON.stringify(value) === undefined;
}

/** A function, or the default export of a module: bundlers make that from `export default`. Hypernova answers 404 for the second. */
function renderFunction(found: unknown): RenderFunction | undefined {
  const value = typeof found === 'object' && found !== null && 'default' in found ? found.default : found;
  return typeof value === 'function' ? (value as RenderFunction) : undefined;
}

