// CommonJS modules inside a sandbox: their own globals and their own cache, Node's way of finding files. Knows no components.
import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { extname, dirname } from 'node:path';
import { compileFunction, constants, type Context } from 'node:vm';
import { createSandbox } from './sandbox.js';

export type Extension = (module: SandboxModule, filename: string) => void;

const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];

export class SandboxModule {
  readonly id: string;
  readonly filename: string;
  readonly parent: SandboxModule | undefined;
  /** By file; one for all modules of a sandbox. */
  readonly cache: Record<string, SandboxModule>;
  readonly context: Context;
  exports: unknown = {};
  loaded = false;

  /** A module without a parent gets a sandbox of its own, any other shares its parent's. */
  constructor(filename: string, parent?: SandboxModule) {
    this.id = filename;
    this.filename = filename;
    this.parent = parent;
    this.cache = parent?.cache ?? Object.create(null);
    this.context = parent?.context ?? createSandbox();
  }

  /** Reads its file and runs it. */
  run(): void {
    const extension = extensions[extname(this.filename)] ?? asScript;
    extension(this, this.filename);
    this.loaded = true;
  }

  /** Runs `code` as the content of this module. */
  _compile(code: string, filename: string): void {
    const options = {
      filename,
      parsingContext: this.context,
      // Without it import() fails inside a sandbox. What it imports lives outside.
      importModuleDynamically: constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    };
    const script = compileFunction(code.replace(/^#!.*/, ''), PARAMETERS, options as Parameters<typeof compileFunction>[2]);
    script.call(this.exports, this.exports, this.#require(), this, filename, dirname(filename));
  }

  /** What is required may be Node's own: that is not sandboxed. */
  require(request: string): unknown {
    return this.#require()(request);
  }

  #require() {
    const outside = createRequire(this.filename);
    const require = (request: string) => (isBuiltin(request) ? outside(request) : this.#load(outside.resolve(request)));
    return Object.assign(require, { resolve: outside.resolve, cache: this.cache, main: outside.main, extensions });
  }

  #load(filename: string): unknown {
    const cached = this.cache[filename];
    if (cached) return cached.exports;
    const module = new SandboxModule(filename, this);
    this.cache[filename] = module; // before it runs: modules may require each other in a circle
    try {
      module.run();
    } catch (error) {
      Reflect.deleteProperty(this.cache, filename);
      throw error;
    }
    return module.exports;
  }

  /** How files of this extension become modules, such as by `module._compile(transformed, filename)`; in sandboxes only. */
  static addExtension(extension: string, load: Extension): void {
    extensions[extension] = load;
  }
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
};
