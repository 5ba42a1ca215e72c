// Finds the transpilers, for example @babel/register, that were added to `require.extensions` before this package was
// loaded. Knows no sandboxes.
import NativeModule from 'node:module';
import type { SandboxModule } from './module.js';

export type Extension = (module: SandboxModule, filename: string) => void;

const OF_NODE = ['.js', '.json', '.node', '.ts', '.cts', '.mts'];

/** By extension. Node's own loaders are not included: they refuse CommonJS in a package with `"type": "module"`. */
export function transpilers(): Record<string, Extension> {
  const all = (NativeModule as unknown as { _extensions: Record<string, Extension> })._extensions;
  const foreign = Object.entries(all).filter(([extension, load]) => !OF_NODE.includes(extension) || (extension === '.js' && isForeign(load)));
  return Object.fromEntries(foreign);
}

/** Node does not tell which function is its own. But only Node's own files are between a call of its own function and `_compile`. */
function isForeign(load: Extension): boolean {
  const { prepareStackTrace, stackTraceLimit } = Error;
  let callers: NodeJS.CallSite[] = [];
  const probe = {
    _compile() {
      Error.prepareStackTrace = (_, sites) => sites;
      Error.stackTraceLimit = Infinity;
      callers = new Error().stack as unknown as NodeJS.CallSite[];
    },
  };
  try {
    load(probe as unknown as SandboxModule, __filename);
  } catch {
    return false; // it uses more than `_compile`, which a sandbox would not have either
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
  const files = callers.slice(1).map((site) => site.getFileName() ?? '');
  return files.slice(0, files.indexOf(__filename)).some((file) => !file.startsWith('node:'));
}
