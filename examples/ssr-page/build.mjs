// Bundles the components into one file for Node, with React's production build, whatever NODE_ENV is later.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export function bundle({ from, to, mode = 'production' }) {
  return build({
    entryPoints: [here(from)],
    outfile: here(to),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs', // react-dom's server build calls require(), which an ES module does not have
    jsx: 'automatic',
    jsxDev: mode === 'development',
    define: { 'process.env.NODE_ENV': JSON.stringify(mode) },
    loader: { '.css': 'text', '.woff2': 'binary' },
    sourcemap: true,
    logLevel: 'warning',
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await bundle({ from: 'src/server.js', to: 'dist/server.cjs' });
}
