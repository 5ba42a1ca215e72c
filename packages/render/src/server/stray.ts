// Finds the job to which an uncaught error belongs, by following each job through its timers and promises. Knows no HTTP
// and no results.
import { AsyncLocalStorage } from 'node:async_hooks';

/** An owner of code, which can fail for an error that the code throws later. */
export interface Owner {
  /** Its name for the log, if it has ended before the error. */
  readonly label: string;
  /** Returns false if it has ended or failed before, and cannot fail any more. */
  fail(error: unknown): boolean;
}

const accounts = new AsyncLocalStorage<Account>();

/**
 * Stands for an owner in all timers and promises that the owner's code starts. Some of them outlive the owner, for example a promise in
 * a cache, and each keeps its account. So an account that is closed keeps only the label, and not the props and the HTML of a job.
 */
export class Account implements Owner {
  #owner: Owner | undefined;
  #label = '';

  constructor(owner: Owner) {
    this.#owner = owner;
  }

  get label(): string {
    return this.#owner?.label ?? this.#label;
  }

  /** Runs `work`, with all timers and promises that it starts, for the owner. */
  run<T>(work: () => T): T {
    return accounts.run(this, work);
  }

  fail(error: unknown): boolean {
    return this.#owner?.fail(error) ?? false;
  }

  /** The owner has ended, and nothing can fail it any more. */
  close(): void {
    this.#label = this.label;
    this.#owner = undefined;
  }
}

export interface StrayErrors {
  /** The error belongs to an owner that has ended or failed before. */
  late: (owner: Owner, error: unknown) => void;
  /** A rejection belongs to no known owner, and the application has decided that such a one does not end its process. */
  tolerated: (error: unknown) => void;
  /** The error belongs to no known owner, so the state of the process is not known. */
  unknown: (error: unknown) => void;
}

const TOLERANT = /--unhandled-rejections[= ](?:none|warn)/;

/** One for each service of this process. They share the listeners below. */
const services: StrayErrors[] = [];

/** Catches the errors that would end the process. All events are emitted in the context of their origin. */
export function catchStrayErrors(to: StrayErrors): void {
  services.push(to);
  if (services.length > 1) return;
  const told = (error: unknown, isTolerated: boolean) => {
    const owner = accounts.getStore();
    if (!owner) return services.forEach(({ tolerated, unknown }) => (isTolerated ? tolerated(error) : unknown(error)));
    if (!owner.fail(error)) to.late(owner, error);
  };
  process.on('uncaughtException', (error) => told(error, false));
  process.on('unhandledRejection', (error) => told(error, toleratesRejections()));
}

/** A listener of the application, such as Sentry's, or this flag keeps a process of Node alive. Ours must not end it then. */
function toleratesRejections(): boolean {
  return process.listenerCount('unhandledRejection') > 1 || TOLERANT.test([...process.execArgv, process.env.NODE_OPTIONS].join(' '));
}
