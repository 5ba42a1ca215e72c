// Finds the job to which an uncaught error belongs, by following each job through its timers and promises. Knows no HTTP
// and no results.
import { AsyncLocalStorage } from 'node:async_hooks';

/** An owner of code, which can fail for an error that the code throws later. */
export interface Owner {
  /** Its name for the log, if it has ended before the error. */
  readonly label: string;
  /** Returns false if it has ended and cannot fail any more. */
  fail(error: unknown): boolean;
}

const owners = new AsyncLocalStorage<Owner>();

/** Runs `work` for `owner`, with all timers and promises that it starts. */
export function onAccountOf<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work);
}

export interface StrayErrors {
  /** The error belongs to an owner that has ended. */
  late(owner: Owner, error: unknown): void;
  /** The error belongs to no known owner, so the state of the process is not known. */
  unknown(error: unknown): void;
}

/** Catches the errors that would end the process. Both events are emitted in the context of their origin. */
export function catchStrayErrors(to: StrayErrors): void {
  const told = (error: unknown) => {
    const owner = owners.getStore();
    if (!owner) return to.unknown(error);
    if (!owner.fail(error)) to.late(owner, error);
  };
  process.on('uncaughtException', told);
  process.on('unhandledRejection', told);
}
