// `@hostler/render/server`: Hypernova's server. The exports of this file are the API; the implementation is in server/.
import { createGetComponent, createVM, getFiles, loadModules } from './server/components.js';
import { SandboxModule as Module } from './server/module.js';
import { createRenderer } from './server/renderer.js';
import { hypernova } from './server/serve.js';

export { createGetComponent, createRenderer, createVM, getFiles, hypernova, loadModules, Module };
export default hypernova;
export type { Vm, VmOptions } from './server/components.js';
export type { OnServer } from './server/serve.js';
export type {
  Application,
  BatchContext,
  Config,
  GetComponent,
  Job,
  JobContext,
  Logger,
  Plugin,
  RenderContext,
  RendererConfig,
  RenderFunction,
} from './server/types.js';

// `require('@hostler/render/server')` and `import hypernova from '@hostler/render/server'` give the function, as with
// Hypernova. The exports above stay available as its properties.
module.exports = Object.assign(hypernova, module.exports);
