// Loads components from files, each in its own sandbox. Knows no jobs: the result is a `getComponent`.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { lines } from './error.js';
import { ExportsCache } from './exports-cache.js';
import { SandboxModule } from './module.js';

export interface VmOptions {
  /** How many modules are cached. Default: the number of files, or 1,000. */
  cacheSize?: number;
  /** A module, for example from `loadModules`, whose sandbox and cache the component with this name shares. */
  environment?: (name: string) => SandboxModule | null | undefined;
  /** Default: `${name}::${sha1 of the code}`. */
  getKey?: (name: string, code: string) => string;
}

export interface Vm {
  readonly exportsCache: ExportsCache;
  /** The exports of the code. It runs only if it is not in the cache. The name need not be that of a file. */
  run(name: string, code: string): unknown;
}

const CACHE_SIZE = 1000;

export function createVM({ cacheSize = CACHE_SIZE, environment, getKey = nameAndHash }: VmOptions = {}): Vm {
  const exportsCache = new ExportsCache(cacheSize);
  return {
    exportsCache,
    run(name, code) {
      const key = getKey(name, code);
      if (exportsCache.has(key)) return exportsCache.get(key);
      const module = new SandboxModule(name, environment?.(name));
      module._compile(code, name);
      module.loaded = true;
      exportsCache.set(key, module.exports);
      return module.exports;
    },
  };
}

/**
 * `files`: the names of components and their files. Each file is read once, and run once at the start. A file that fails to run
 * is reported and left out. A file that cannot be read is a mistake in the list, so this throws.
 */
export function createGetComponent(files: Record<string, string>, vmOptions: VmOptions = {}): (name: string) => unknown {
  const keyOf = vmOptions.getKey ?? nameAndHash; // once per file, because hashing a bundle for every job costs more than some renders
  const vm = createVM({ cacheSize: Object.keys(files).length, ...vmOptions });
  const components = new Map<string, { file: string; code: string; key: string }>();
  for (const [name, file] of Object.entries(files)) {
    const code = readFileSync(file, 'utf8');
    try {
      vm.run(file, code);
      components.set(name, { file, code, key: keyOf(file, code) });
    } catch (error) {
      console.error(`error: the component ${JSON.stringify(name)} is left out, ${file} cannot be run: ${lines(error)}`);
    }
  }
  return (name) => {
    const found = components.get(name);
    if (!found) return null;
    return vm.exportsCache.has(found.key) ? vm.exportsCache.get(found.key) : vm.run(found.file, found.code);
  };
}

/** The .js files in a folder and its subfolders, with their relative paths. Names that begin with a dot are skipped. */
export function getFiles(folder: string): { name: string; path: string }[] {
  return namesIn(folder, '', false).sort().map((name) => ({ name, path: join(folder, name) }));
}

/** Of a folder behind a symbolic link only its own files, as in Hypernova: links may lead in a circle, as those of pnpm do. */
function namesIn(folder: string, place: string, isLink: boolean): string[] {
  const entries = readdirSync(join(folder, place), { withFileTypes: true }).filter(({ name }) => !name.startsWith('.'));
  return entries.flatMap((entry) => {
    const name = join(place, entry.name);
    if (!isFolder(entry, join(folder, name))) return name.endsWith('.js') ? [name] : [];
    return isLink ? [] : namesIn(folder, name, entry.isSymbolicLink());
  });
}

function isFolder(entry: Dirent, path: string): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // it leads nowhere, or to itself
  }
}

/** Makes an `environment`: each call makes one sandbox and runs these modules in it. Missing modules are skipped. */
export function loadModules(require: NodeJS.Require, files: string[]): () => SandboxModule | null {
  return () => files.reduce<SandboxModule | null>((module, file) => load(resolved(require, file), module), null);
}

function load(file: string | undefined, parent: SandboxModule | null): SandboxModule | null {
  if (file === undefined) return parent;
  const module = new SandboxModule(file, parent);
  module.run();
  return module;
}

function resolved(require: NodeJS.Require, file: string): string | undefined {
  try {
    return require.resolve(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

function nameAndHash(name: string, code: string): string {
  return `${name}::${createHash('sha1').update(code).digest('hex')}`;
}
