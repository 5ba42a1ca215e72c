// The page that the render scenarios serve, and its two renders. Knows examples/ssr-page, nothing of peers.
import { fileURLToPath } from 'node:url';

export const app = {
  name: 'examples/ssr-page',
  dir: fileURLToPath(new URL('../../examples/ssr-page', import.meta.url)),
  args: ['dist/server.cjs'],
  command: 'node dist/server.cjs',
  short: '/?count=40',
  long: '/?count=400',
};
