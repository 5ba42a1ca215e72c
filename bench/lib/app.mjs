// The page that the render scenarios serve, and its two renders. Knows examples/ssr-page, nothing of peers.
import { fileURLToPath } from 'node:url';

// Ten homes are some 800 elements, a page of the usual size; 120 homes take ten times as long. The default, 40, would give a
// quarter of the requests in the same time, and p99 is only as firm as the number of requests behind it.
export const app = {
  name: 'examples/ssr-page',
  dir: fileURLToPath(new URL('../../examples/ssr-page', import.meta.url)),
  args: ['dist/server.cjs'],
  command: 'node dist/server.cjs',
  short: '/?count=10',
  long: '/?count=120',
};
