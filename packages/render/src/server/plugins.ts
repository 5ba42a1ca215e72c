// Tells plugins of events, and waits a limited time for asynchronous ones. Knows no jobs.
import { lines } from './error.js';
import type { Log } from './logger.js';
import type { Plugin } from './types.js';

/** How long an event may hold up a request, in milliseconds. */
const EVENT_LIMIT = 300;

type Waiting = 'initialize' | 'batchStart' | 'jobStart' | 'jobEnd' | 'batchEnd' | 'shutDown';
type Immediate = 'beforeRender' | 'afterRender';
/** The arguments of an event for one plugin. */
type Arguments = (plugin: Plugin) => unknown[];

export class Plugins {
  readonly #plugins: Plugin[];
  readonly #log: Log;

  constructor(plugins: Plugin[], log: Log) {
    this.#plugins = plugins;
    this.#log = log;
  }

  /** Undefined if there is nothing to wait for. Throws or rejects with the error of a plugin. */
  tell(event: Waiting, args: Arguments): Promise<void> | undefined {
    const work = this.#call(event, args).filter(isThenable);
    return work.length === 0 ? undefined : this.#within(event, Promise.all(work));
  }

  tellNow(event: Immediate, args: Arguments): void {
    this.#call(event, args);
  }

  /** An error while plugins are told of an error is only logged. */
  tellError(args: Arguments): void {
    for (const plugin of this.#plugins) {
      try {
        call(plugin, 'onError', args);
      } catch (error) {
        this.#log.error(`a plugin's onError threw: ${lines(error)}`);
      }
    }
  }

  #call(event: Waiting | Immediate, args: Arguments): unknown[] {
    return this.#plugins.map((plugin) => call(plugin, event, args));
  }

  async #within(event: Waiting, work: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#log.info(`Lifecycle method ${event} took too long.`, { timeout: EVENT_LIMIT });
        resolve();
      }, EVENT_LIMIT);
    });
    try {
      await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function call(plugin: Plugin, event: keyof Plugin, args: Arguments): unknown {
  const method = plugin[event] as ((...args: unknown[]) => unknown) | undefined;
  return typeof method === 'function' ? method.apply(plugin, args(plugin)) : undefined;
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
