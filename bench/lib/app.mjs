// The page of the render scenarios, in two sizes. Knows examples/ssr-page, and nothing of peers.
import { fileURLToPath } from 'node:url';

// Ten homes are about 800 elements, a page of normal size; 120 homes take ten times as long. With the default of 40, the
// same time would give a quarter of the requests, and p99 needs many requests to be exact.
export const app = {
  name: 'examples/ssr-page',
  dir: fileURLToPath(new URL('../../examples/ssr-page', import.meta.url)),
  args: ['dist/server.cjs'],
  command: 'node dist/server.cjs',
  short: '/?count=10',
  long: '/?count=120',
};
