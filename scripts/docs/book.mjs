// Builds the documentation site, and finds links of the built pages that lead nowhere. Knows no page by name.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { root } from '../steps.mjs';

export const BOOK = join(root, 'target/book');
/** In text, `<` is written as `&lt;`, so code that shows HTML has no match. */
const ELEMENT = /<[a-z][^<>]*>/g;
const ATTRIBUTE = /\s(href|src|id|name)="([^"]*)"/g;

/** Builds `docs` into `folder`. Rejects with mdBook's words if it fails. */
export async function buildBook(mdbook, folder = BOOK) {
  const child = spawn(mdbook, ['build', join(root, 'docs'), '--dest-dir', folder], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = Promise.all([child.stdout, child.stderr].map(async (stream) => (await stream.setEncoding('utf8').toArray()).join('')));
  const [code] = await once(child, 'close');
  const text = (await said).join('');
  // A page that SUMMARY.md names twice, or an unclosed element, is a warning.
  if (code !== 0 || /\b(WARN|ERROR)\b/.test(text)) throw new Error(`mdBook (exit code ${code}):\n${text}`);
}

/** The files of a folder and its folders, as paths from it. */
export function filesOf(folder) {
  return readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());
}

/** What is wrong with the links of the built pages, a line for each. */
export function deadLinks(folder = BOOK) {
  const pages = new Map(filesOf(folder).filter((name) => name.endsWith('.html')).map((name) => [name, read(join(folder, name))]));
  const dead = [];
  for (const [name, { links }] of pages) {
    // 404.html is for any path, so its links begin at the root of the site.
    if (name === '404.html') continue;
    for (const link of links) {
      const fault = faultOf(link, { folder, name, pages });
      if (fault) dead.push(`${name}: ${link}: ${fault}`);
    }
  }
  return { dead, pages: pages.size };
}

function faultOf(link, { folder, name, pages }) {
  if (/^(https?|mailto):/.test(link)) return undefined;
  const [path, anchor] = decodeURI(link.replaceAll('&amp;', '&')).split('#');
  if (path.startsWith('/')) return 'works only if the site is at the root of its host';
  const target = path === '' ? name : relative(folder, join(folder, dirname(name), path));
  if (target.startsWith('..')) return 'leads out of the site';
  if (!existsSync(join(folder, target))) return 'there is no such file';
  if (anchor && pages.has(target) && !pages.get(target).anchors.has(anchor)) return 'there is no such heading';
  return undefined;
}

/** The links and the anchors of a page. */
function read(file) {
  const elements = readFileSync(file, 'utf8').match(ELEMENT) ?? [];
  const found = elements.flatMap((element) => [...element.matchAll(ATTRIBUTE)].map(([, kind, value]) => ({ kind, value })));
  const of = (...kinds) => found.filter(({ kind }) => kinds.includes(kind)).map(({ value }) => value);
  return { links: of('href', 'src'), anchors: new Set(of('id', 'name')) };
}
