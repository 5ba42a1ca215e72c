// Bundles the islands twice, for the renderer and for browsers. Each bundle gets its own part of @hostler/render.
import { build } from 'esbuild';

const common = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  minify: true,
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning',
};

await build({ ...common, entryPoints: ['src/islands.js'], outfile: 'dist/islands.cjs', platform: 'node', target: 'node20' });
await build({
  ...common,
  entryPoints: { page: 'src/islands.js', style: 'src/style.css' },
  outdir: 'dist/public',
  platform: 'browser',
  target: 'es2020',
  loader: { '.woff2': 'file' },
  assetNames: '[name]',
});
