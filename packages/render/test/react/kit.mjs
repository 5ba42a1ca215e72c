// Makes bundles with each version of React, and shows pages with them in Chromium. Knows no component.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { openBrowser } from '@hostler/testkit';
import { build } from 'esbuild';
import { folderOf } from './install.mjs';

const require = createRequire(import.meta.url);

/**
 * The text of `entry` with all its imports, for "browser" or "node", with this React in its development build. `replaced`:
 * further modules of its folder.
 */
export async function bundle(entry, version, platform = 'browser', replaced = {}) {
  const modules = `${folderOf(version)}node_modules`;
  const result = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    write: false,
    metafile: true,
    platform,
    format: platform === 'node' ? 'cjs' : 'iife',
    nodePaths: [modules],
    alias: Object.fromEntries(Object.entries({ react: 'react', 'react-dom': 'react-dom', ...replaced }).map(([from, to]) => [from, `${modules}/${to}`])),
    define: { 'process.env.NODE_ENV': '"development"' },
    logLevel: 'warning',
  });
  return { text: result.outputFiles[0].text, inputs: Object.keys(result.metafile.inputs) };
}

/** The render functions of server.mjs with this React. */
export async function serverWith(version) {
  const { text } = await bundle('server.mjs', version, 'node');
  const module = { exports: {} };
  new Function('module', 'exports', 'require', text)(module, module.exports, require);
  return module.exports;
}

/** Chromium and a server for one page at a time. `open` returns the page, with the messages of its console and its errors. */
export async function browser() {
  const chromium = await openBrowser();
  let html;
  const server = createServer((_req, res) => res.setHeader('content-type', 'text/html; charset=utf-8').end(html)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    async open(body, script, { head = false } = {}) {
      // `first` stores the nodes from the server, to tell them from nodes that a render has replaced.
      const first = '<script>window.first = [...document.querySelectorAll("button")];</script>';
      const code = `<script>${script.replaceAll('</script', '<\\/script')}</script>`;
      html = `<!doctype html><html><head><link rel="icon" href="data:,">${head ? code : ''}</head><body>${body}${first}${head ? '' : code}</body></html>`;
      const page = await chromium.newPage();
      const complaints = [];
      page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(String(error)));
      await page.goto(`http://127.0.0.1:${server.address().port}/`);
      return { page, complaints };
    },
    async close() {
      await chromium.close();
      server.close();
    },
  };
}
