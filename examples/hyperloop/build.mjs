// Builds the page: styles and script for the browser, the server, and the shells that stand in for it. React's production build is baked in.
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { build } from 'esbuild';

/** A shell holds the paths it links to, so there is one for each place that the page may be served at. */
const BASES = [...new Set(['', '/stays', process.env.BASE_PATH ?? ''])];
const dist = (path) => fileURLToPath(new URL(`dist/${path}`, import.meta.url));
const source = (path) => fileURLToPath(new URL(`src/${path}`, import.meta.url));

const common = {
  bundle: true,
  jsx: 'automatic',
  minify: true,
  metafile: true,
  logLevel: 'warning',
  loader: { '.woff2': 'file', '.svg': 'copy' },
  assetNames: '[name]-[hash]',
  entryNames: '[name]-[hash]',
};
const forNode = { platform: 'node', target: 'node20', format: 'esm', minify: false, sourcemap: true, entryNames: '[name]', banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" } };

await rm(dist(''), { recursive: true, force: true });
await mkdir(dist('assets'), { recursive: true });

const looks = await build({ ...common, entryPoints: [source('styles/page.css'), source('styles/plain.css'), source('styles/icon.svg')], outdir: dist('assets') });
const files = { styles: outputOf(looks, 'styles/page.css'), plain: outputOf(looks, 'styles/plain.css'), icon: named(looks, /^icon-\w+\.svg$/) };
const define = { 'process.env.NODE_ENV': '"production"', FILES: JSON.stringify(files) };

const browser = await build({ ...common, define, entryPoints: { app: source('browser.jsx') }, outdir: dist('assets'), format: 'esm', target: 'es2022', legalComments: 'none' });
const script = outputOf(browser, 'src/browser.jsx');

await build({ ...common, ...forNode, define, entryPoints: { server: source('server/main.js'), shells: source('server/shell.jsx') }, outdir: dist(''), outExtension: { '.js': '.mjs' } });
const shells = await writeShells();
await writeFile(dist('built.json'), JSON.stringify({ files, script, shells }, null, 2));
await compressAll(dist('assets'));

async function writeShells() {
  const { renderShell } = await import('./dist/shells.mjs');
  const [css, code] = await Promise.all([files.styles, script].map((name) => readFile(dist(`assets/${name}`), 'utf8')));
  const names = BASES.map((base) => [base, base === '' ? 'shell.html' : `shell${base.replaceAll('/', '.')}.html`]);
  for (const [base, name] of names) await writeFile(dist(name), renderShell({ base, files, css, script: code }));
  return Object.fromEntries(names);
}

async function compressAll(folder) {
  for (const name of await readdir(folder)) {
    if (name.endsWith('.woff2')) continue; // is compressed
    const body = await readFile(`${folder}/${name}`);
    await writeFile(`${folder}/${name}.br`, await promisify(brotliCompress)(body));
    await writeFile(`${folder}/${name}.gz`, await promisify(gzip)(body, { level: 9 }));
  }
}

/** The name of what an entry became. */
function outputOf({ metafile }, entry) {
  const [path] = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint?.endsWith(entry));
  return basename(path);
}

function named({ metafile }, pattern) {
  return Object.keys(metafile.outputs).map((path) => basename(path)).find((name) => pattern.test(name));
}
