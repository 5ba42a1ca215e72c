// Builds the page: styles and script for the browser, the server, and the shells for times without a server. Uses React's
// production build.
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { build } from 'esbuild';

/** A shell contains the paths of its links, so there is one for each path under which the page is served. */
const BASES = [...new Set(['', '/stays', process.env.BASE_PATH ?? ''])];
const source = (path) => fileURLToPath(new URL(`src/${path}`, import.meta.url));
const loader = { '.woff2': 'file', '.svg': 'dataurl' };
const common = { bundle: true, jsx: 'automatic', metafile: true, logLevel: 'warning', loader, assetNames: '[name]-[hash]' };
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"; // react-dom's server build calls it

/** Builds into the folder `to`. With `mode` "development", React prints warnings. */
export async function buildAll({ to, mode = 'production' }) {
  const assets = join(to, 'assets');
  await rm(to, { recursive: true, force: true });
  await mkdir(assets, { recursive: true });

  const minify = mode === 'production';
  const jsxDev = mode === 'development';
  const forBrowser = { ...common, minify, jsxDev, outdir: assets, entryNames: '[name]-[hash]' };
  const styles = ['page.css', 'plain.css'].map((name) => source(`styles/${name}`));
  const looks = await build({ ...forBrowser, entryPoints: styles });
  const files = { styles: outputOf(looks, /^page-\w+\.css$/), plain: outputOf(looks, /^plain-\w+\.css$/) };

  const define = { 'process.env.NODE_ENV': JSON.stringify(mode), FILES: JSON.stringify(files) };
  const browser = await build({ ...forBrowser, define, entryPoints: { app: source('browser.jsx') }, format: 'esm', target: 'es2022', legalComments: 'none' });
  const script = outputOf(browser, /^app-\w+\.js$/);

  const node = { platform: 'node', target: 'node20', format: 'esm', outExtension: { '.js': '.mjs' }, banner: { js: REQUIRE }, sourcemap: true };
  const forNode = { ...common, ...node, define, jsxDev, outdir: to };
  await build({ ...forNode, entryPoints: { server: source('server/main.js'), shells: source('server/shell.jsx') } });

  const inside = await build({ ...common, minify, entryPoints: styles, outdir: to, write: false, loader: { '.woff2': 'dataurl' } });
  const [page, plain] = ['page.css', 'plain.css'].map((name) => inside.outputFiles.find(({ path }) => path.endsWith(name)).text);
  const shells = await writeShells({ to, css: { page, plain }, script: await readFile(join(assets, script), 'utf8') });
  await writeFile(join(to, 'built.json'), JSON.stringify({ files, script, shells }, null, 2));
  await compressAll(assets);
}

async function writeShells({ to, ...parts }) {
  const { renderShell } = await import(pathToFileURL(join(to, 'shells.mjs')));
  const names = BASES.map((base) => [base, `shell${base.replaceAll('/', '.')}.html`]);
  for (const [base, name] of names) await writeFile(join(to, name), renderShell({ base, ...parts }));
  return Object.fromEntries(names);
}

async function compressAll(folder) {
  for (const name of await readdir(folder)) {
    if (name.endsWith('.woff2')) continue; // is already compressed
    const body = await readFile(join(folder, name));
    await writeFile(join(folder, `${name}.br`), await promisify(brotliCompress)(body));
    await writeFile(join(folder, `${name}.gz`), await promisify(gzip)(body, { level: 9 }));
  }
}

function outputOf({ metafile }, pattern) {
  return Object.keys(metafile.outputs).map((path) => basename(path)).find((name) => pattern.test(name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildAll({ to: fileURLToPath(new URL('dist', import.meta.url)) });
