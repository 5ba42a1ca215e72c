// `@hostler/render/server`: Hypernova's server. What is exported here is the API; the rest is in server/.
import { createRenderer } from './server/renderer';
import { hypernova } from './server/serve';

export { createRenderer, hypernova };
export default hypernova;
export type { OnServer } from './server/serve';
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
} from './server/types';

// `require('@hostler/render/server')` and `import hypernova from '@hostler/render/server'` give the function, as with Hypernova;
// the exports above stay on it by name.
module.exports = Object.assign(hypernova, module.exports);
