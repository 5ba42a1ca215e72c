// Runs a batch: from its jobs to the text of its response, with Hypernova's events in the order of Hypernova. Knows no
// HTTP; passes request and response on to plugins.
import { setImmediate as turn } from 'node:timers/promises';
import { report, type ErrorReport } from './error.js';
import { RenderJob } from './job.js';
import type { Plugins } from './plugins.js';
import { Account, type Owner } from './stray.js';
import type { BatchContext, GetComponent, Job, JobContext, Plugin } from './types.js';

/** What all batches of a renderer share. */
export interface Core {
  getComponent: GetComponent;
  plugins: Plugins;
  concurrent: boolean;
  /** In milliseconds. 0: no limit. */
  jobTimeout: number;
}

export interface Outcome {
  statusCode: number;
  text: string;
}

type Outside = Pick<BatchContext, 'request' | 'response'>;

/** After so many milliseconds the next job waits for a turn of the event loop. */
const LONGEST_RUN = 10;

export class Batch implements Owner {
  readonly label = 'the plugins of a batch';
  readonly #core: Core;
  readonly #outside: Outside;
  readonly #jobs: Record<string, Job>;
  readonly #tokens: string[];
  readonly #renders: Map<string, RenderJob>;
  readonly #batchMeta = {};
  readonly #data = new Map<Plugin, Map<unknown, unknown>>();
  #error: ErrorReport | null = null;
  /** The client does not wait for the response any more. */
  #abandoned = false;

  constructor(core: Core, jobs: Record<string, Job>, outside: Outside) {
    this.#core = core;
    this.#outside = outside;
    this.#jobs = jobs;
    this.#tokens = Object.keys(jobs);
    this.#renders = new Map(this.#tokens.map((token) => [token, new RenderJob(token, jobs[token])]));
  }

  /** Errors of plugins that the batch does not wait for fail no job: they are logged. */
  fail(): boolean {
    return false;
  }

  /** Fails all running jobs, and starts no others. */
  abandon(why: Error): void {
    this.#abandoned = true;
    for (const render of this.#renders.values()) render.fail(why);
  }

  run(): Promise<Outcome> {
    const account = new Account(this);
    return account.run(() => this.#run(account));
  }

  async #run(account: Account): Promise<Outcome> {
    const { plugins } = this.#core;
    const context = (plugin: Plugin) => [this.#batchContext(plugin)];
    try {
      // A needless await would have a cost, because each promise is also tracked for its job.
      const started = plugins.tell('batchStart', context);
      if (started) await started;
      await this.#renderAll();
      const told = plugins.tell('batchEnd', context);
      if (told) await told;
    } catch (error) {
      this.#error = report(error);
      plugins.tellError((plugin) => [this.#batchContext(plugin), error]);
    } finally {
      account.close();
    }
    return { statusCode: this.#error ? 500 : 200, text: this.#toText() };
  }

  /** Jobs that only compute give the event loop no turn. It gets one between them, for other requests and to see that the client has left. */
  async #renderAll(): Promise<void> {
    const running: Promise<void>[] = [];
    let turned = performance.now();
    // A plugin may have removed jobs from the batch at its start.
    for (const render of Object.keys(this.#jobs).flatMap((token) => this.#renders.get(token) ?? [])) {
      if (performance.now() - turned > LONGEST_RUN) {
        await turn();
        await turn(); // the first one may come before the loop has looked at its sockets
        turned = performance.now();
      }
      if (this.#abandoned) break;
      const rendered = this.#renderOne(render);
      if (this.#core.concurrent) running.push(rendered);
      else await rendered;
    }
    if (running.length > 0) await Promise.all(running);
  }

  #renderOne(render: RenderJob): Promise<void> {
    const account = new Account(render);
    return account.run(async () => {
      const { plugins, getComponent, jobTimeout } = this.#core;
      const context = (plugin: Plugin) => [this.#jobContext(plugin, render)];
      try {
        const started = plugins.tell('jobStart', context);
        if (started) await started;
        plugins.tellNow('beforeRender', context);
        await render.render(getComponent, jobTimeout);
        plugins.tellNow('afterRender', context);
        const told = plugins.tell('jobEnd', context);
        if (told) await told;
      } catch (error) {
        render.record(error);
        plugins.tellError((plugin) => [this.#jobContext(plugin, render), error]);
      } finally {
        account.close();
      }
    });
  }

  #jobContext(plugin: Plugin, { context }: RenderJob): JobContext {
    return { ...this.#shared(), ...context, data: this.#dataOf(plugin) };
  }

  #batchContext(plugin: Plugin): BatchContext {
    return { ...this.#shared(), tokens: this.#tokens, jobs: this.#jobs, data: this.#dataOf(plugin) };
  }

  #shared() {
    const { request, response } = this.#outside;
    return { request, response, batchMeta: this.#batchMeta };
  }

  #dataOf(plugin: Plugin): Map<unknown, unknown> {
    const data = this.#data.get(plugin) ?? new Map();
    this.#data.set(plugin, data);
    return data;
  }

  /** Built by hand: a job with a result that JSON cannot express fails alone, and a token may be `__proto__`. */
  #toText(): string {
    const results = [...this.#renders].map(([token, render]) => `${JSON.stringify(token)}:${this.#resultOf(render)}`);
    return `{"success":${this.#error === null},"error":${JSON.stringify(this.#error)},"results":{${results.join(',')}}}`;
  }

  #resultOf(render: RenderJob): string {
    try {
      return render.toText();
    } catch (error) {
      render.forget(error);
      this.#core.plugins.tellError((plugin) => [this.#jobContext(plugin, render), error]);
      return render.toText();
    }
  }
}
