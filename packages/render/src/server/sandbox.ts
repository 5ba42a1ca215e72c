// A separate global object for sandboxed code: the globals of JavaScript and those of this version of Node. Knows no
// modules.
import { createContext, runInContext, runInNewContext, type Context } from 'node:vm';

/** V8 gives every context a console that prints nothing, so ours replaces it. */
const ALWAYS_OURS = ['console'];
/** The context has these already, and they must stay its own. */
const ITS_OWN = ['global', 'globalThis'];
/** Node has none of these. With a `window`, which some applications define, a component would take its sandbox for a browser. */
const OF_BROWSERS = ['window', 'document'];
/** Read when this file is loaded, because a sandbox gets the globals of Node, and not those that the application adds. */
const OF_NODE = Object.getOwnPropertyNames(globalThis).filter((name) => !ITS_OWN.includes(name) && !OF_BROWSERS.includes(name));

/**
 * All globals of this version of Node that a bare context lacks, found by comparison: a list of names would fit one version
 * only. (Hypernova has nine names; without queueMicrotask and TextEncoder React 19 does not load.)
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
  return [...OF_NODE.filter((name) => !bare.has(name)), ...ALWAYS_OURS];
}

/**
 * Copies values. A global that Node makes at the first use (fetch, crypto) is read from our own global object at the first use,
 * because its getter accepts no other object. An assignment replaces it in this sandbox only.
 */
function lend(sandbox: Record<string, unknown>, name: string): void {
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
  if (!descriptor) return; // the application has deleted it, such as `navigator`
  if (!descriptor.get) {
    Object.defineProperty(sandbox, name, { ...descriptor, writable: true, configurable: true });
    return;
  }
  const put = (value: unknown) => Object.defineProperty(sandbox, name, { value, writable: true, configurable: true, enumerable: false });
  const get = () => (globalThis as Record<string, unknown>)[name];
  Object.defineProperty(sandbox, name, { get, set: put, configurable: true, enumerable: false });
}
