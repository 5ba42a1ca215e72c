// A global object of its own for code of its own: what JavaScript brings, and whatever this Node has on top of it. Knows no modules.
import { createContext, runInContext, runInNewContext, type Context } from 'node:vm';

/** V8 gives every context a console too, one that prints nothing. */
const ALWAYS_OURS = ['console'];
/** The context has these already, and they must be its own. */
const ITS_OWN = ['global', 'globalThis'];

/**
 * Everything that this very Node has and a bare context lacks, by asking both: a list of names would be of one version only.
 * (Hypernova's has nine; without queueMicrotask and TextEncoder React 19 does not even load.)
 */
let missing: string[] | undefined;

export function createSandbox(): Context {
  missing ??= namesMissing();
  const sandbox: Record<string, unknown> = {};
  for (const name of missing) lend(sandbox, name);
  const context = createContext(sandbox);
  context.global = runInContext('globalThis', context);
  return context;
}

function namesMissing(): string[] {
  const bare = new Set(runInNewContext('Object.getOwnPropertyNames(globalThis)') as string[]);
  const ours = Object.getOwnPropertyNames(globalThis).filter((name) => !bare.has(name) && !ITS_OWN.includes(name));
  return [...ours, ...ALWAYS_OURS];
}

/**
 * Values are copied. What Node makes when it is first asked for (fetch, crypto) is asked for then, of our own global object: its
 * getters refuse any other. To assign replaces it in this sandbox alone.
 */
function lend(sandbox: Record<string, unknown>, name: string): void {
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
  if (!descriptor?.get) {
    Object.defineProperty(sandbox, name, { ...descriptor, writable: true, configurable: true });
    return;
  }
  const put = (value: unknown) => Object.defineProperty(sandbox, name, { value, writable: true, configurable: true, enumerable: false });
  const get = () => (globalThis as Record<string, unknown>)[name];
  Object.defineProperty(sandbox, name, { get, set: put, configurable: true, enumerable: false });
}
