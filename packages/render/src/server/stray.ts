// Whose is an error that nobody caught? Follows each job through its timers and promises. Knows no HTTP and no results.
import { AsyncLocalStorage } from 'node:async_hooks';

/** Something that can answer for what its code throws later. */
export interface Owner {
  /** For the log, when it is too late to fail. */
  readonly label: string;
  /** False: it has ended, nothing can fail any more. */
  fail(error: unknown): boolean;
}

const owners = new AsyncLocalStorage<Owner>();

/** Runs `work`, and whatever it sets off, on the account of `owner`. */
export function onAccountOf<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work);
}

export interface StrayErrors {
  /** It is an owner's, who has ended. */
  late(owner: Owner, error: unknown): void;
  /** Nobody knows whose it was: what it has left behind may be anything. */
  unknown(error: unknown): void;
}

/** Listens for what the process would die of. Both events are told in the context that they come from. */
export function catchStrayErrors(to: StrayErrors): void {
  const told = (error: unknown) => {
    const owner = owners.getStore();
    if (!owner) return to.unknown(error);
    if (!owner.fail(error)) to.late(owner, error);
  };
  process.on('uncaughtException', told);
  process.on('unhandledRejection', told);
}
