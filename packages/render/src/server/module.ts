// CommonJS modules inside a sandbox: their own globals and their own cache, Node's way of finding files. Knows no components.
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
  /** A file, or any name for code that comes from elsewhere, such as `bundle.js`: that one requires from the working directory. */
  filename: string;
  readonly parent: SandboxModule | undefined;
  /** By file; one for all modules of a sandbox. */
  readonly cache: Record<string, SandboxModule>;
  readonly context: Context;
  exports: unknown = {};
  loaded = false;

  /** A module without a parent gets a sandbox of its own, any other shares its parent's. */
  constructor(id: string, parent?: SandboxModule | null) {
    this.id = id;
    this.filename = id;
    this.parent = parent ?? undefined;
    this.cache = parent?.cache ?? Object.create(null);
    this.context = parent?.context ?? createSandbox();
  }

  /** Says which file this module is, before it runs; without it, the file is the id. */
  load(filename: string): void {
    assert(!this.loaded, `The module ${this.filename} has run already`);
    this.filename = filename;
  }

  /** Reads a file, its own if none is named, and runs it. */
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
    const outside = createRequire(place(this.filename));
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

  /** Runs a file in a sandbox of its own, and gives its module. A relative path begins at the working directory. */
  static load(id: string, filename = id): SandboxModule {
    const module = new SandboxModule(id);
    module.load(filename);
    module.run();
    return module;
  }

  /** What `parent` gets by `require(file)`; without a parent, in a sandbox of its own and from the working directory. */
  static loadFile(file: string, parent?: SandboxModule | null): unknown {
    return (parent ?? new SandboxModule('index.js')).require(file);
  }

  /** How files of this extension become modules, such as by `module._compile(transformed, filename)`; in sandboxes only. */
  static addExtension(extension: string, load: Extension): void {
    extensions[extension] = load;
  }
}

/** `createRequire` takes absolute paths alone, and what ends in a slash as a folder. */
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
