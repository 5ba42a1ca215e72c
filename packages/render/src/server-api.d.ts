// The types of `@hostler/render/server` for `require` and `import`: a function with the other exports as its properties.
// server.ts builds it at run time, which TypeScript cannot see.
import * as parts from './server.js';

declare const server: typeof parts.hypernova & typeof parts;
declare namespace server {
  type Application = parts.Application;
  type BatchContext = parts.BatchContext;
  type Config<App extends Application = Application> = parts.Config<App>;
  type GetComponent = parts.GetComponent;
  type Job = parts.Job;
  type JobContext = parts.JobContext;
  type Logger = parts.Logger;
  type OnServer<App extends Application = Application> = parts.OnServer<App>;
  type Plugin = parts.Plugin;
  type RenderContext = parts.RenderContext;
  type RendererConfig = parts.RendererConfig;
  type RenderFunction = parts.RenderFunction;
  type Vm = parts.Vm;
  type VmOptions = parts.VmOptions;
}
export = server;
