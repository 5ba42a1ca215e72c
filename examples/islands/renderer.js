// The renderer: Hypernova's POST /batch for the islands of src/. Knows no page.
import hypernova from '@hostler/render/server';
import { islands } from './dist/islands.cjs';

hypernova({
  port: Number(process.env.PORT ?? 8080),
  host: '127.0.0.1',
  getComponent(name, context) {
    context.returnMeta.worker = process.pid;
    return Object.hasOwn(islands, name) ? islands[name] : null;
  },
});
