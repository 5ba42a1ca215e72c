// CommonJS modules in a sandbox: with their own globals and cache, and with Node's way to find files. Knows no
// components.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { basename, dirname, extname, resolve } from 'node:path';
import { compileFunction, constants, type Context } from 'node:vm';
import { createSandbox } from './sandbox.js';
import { transpilers, type Extension } from './transpilers.js';

const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];

export class SandboxModule {
  readonly id: string;
  /** A file, or any name for code from elsewhere, for example `bundle.js`, which requires files relative to the working directory. */
  filename: string;
  readonly parent: SandboxModule | undefined;
  /** By file. All modules of a sandbox share one. */
  readonly cache: Record<string, SandboxModule>;
  readonly context: Context;
  exports: unknown = {};
  loaded = false;

  /** A module without a parent gets its own sandbox. Other modules share their parent's. */
  constructor(id: string, parent?: SandboxModule | null) {
    this.id = id;
    this.filename = id;
    this.parent = parent ?? undefined;
    this.cache = parent?.cache ?? Object.create(null);
    this.context = parent?.context ?? createSandbox();
  }

  /** Sets the file of this module before it runs. Without this call, the file is the id. */
  load(filename: string): void {
    assert(!this.loaded, `The module ${this.filename} has run already`);
    this.filename = filename;
  }

  /** Reads and runs a file, by default the module's own. */
  run(filename = this.filename): void {
    const extension = extensions[extname(filename)] ?? asScript;
    extension(this, filename);
    this.loaded = true;
  }

  /** Runs `code` as the content of this module. */
  _compile(code: string, filename: string): void {
    const options = {
      filename,
      parsingContext: this.context,
      // Without this option import() fails in a sandbox. The imported module is outside the sandbox.
      importModuleDynamically: constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    };
    const script = compileFunction(code.replace(/^#!.*/, ''), PARAMETERS, options as Parameters<typeof compileFunction>[2]);
    script.call(this.exports, this.exports, this.#require(), this, filename, dirname(filename));
  }

  /** Requires a module. Node's built-in modules are not sandboxed. */
  require(request: string): unknown {
    return this.#require()(request);
  }

  #require() {
    const outside = createRequire(place(this.filename));
    const require = (request: string) => (isBuiltin(request) ? outside(request) : this.#load(outside.resolve(request)));
    return Object.assign(require, { resolve: outside.resolve, cache: this.cache, main: outside.main, extensions });
  }

  #load(filename: string): unknown {
    const cached = this.cache[filename];
    if (cached) return cached.exports;
    const module = new SandboxModule(filename, this);
    this.cache[filename] = module; // before it runs, because modules may require each other in a circle
    try {
      module.run();
    } catch (error) {
      Reflect.deleteProperty(this.cache, filename);
      throw error;
    }
    return module.exports;
  }

  /** Runs a file in its own sandbox, and returns its module. A relative path starts at the working directory. */
  static load(id: string, filename = id): SandboxModule {
    const module = new SandboxModule(id);
    module.load(filename);
    module.run();
    return module;
  }

  /** The exports of `file` as `parent` would require it. Without a parent: in its own sandbox, relative to the working directory. */
  static loadFile(file: string, parent?: SandboxModule | null): unknown {
    return (parent ?? new SandboxModule('index.js')).require(file);
  }

  /** Sets how files with this extension become modules, for example by `module._compile(transformed, filename)`. In sandboxes only. */
  static addExtension(extension: string, load: Extension): void {
    extensions[extension] = load;
  }
}

/** `createRequire` accepts only absolute paths, and takes a path with a final slash for a folder. */
function place(filename: string): string {
  return resolve(dirname(filename), basename(filename) || 'index.js');
}

const asScript: Extension = (module, filename) => {
  module._compile(readFileSync(filename, 'utf8').replace(/^\uFEFF/, ''), filename);
};

const extensions: Record<string, Extension> = {
  '.js': asScript,
  '.json': (module, filename) => {
    module.exports = JSON.parse(readFileSync(filename, 'utf8').replace(/^\uFEFF/, ''));
  },
  '.node': (module, filename) => {
    module.exports = createRequire(filename)(filename);
  },
  '.mjs': (_module, filename) => {
    throw new Error(`${filename} is an ES module, and a sandbox takes CommonJS only: bundle it to CommonJS (esbuild --format=cjs)`);
  },
  ...transpilers(),
};
