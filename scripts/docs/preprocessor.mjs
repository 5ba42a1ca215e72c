// A preprocessor of mdBook: pages of the repository outside docs/ that SUMMARY.md names become pages of the book, and links to what the
// book does not have become plain text. Reads the book on stdin and writes it to stdout. Knows no page by name.
import { posix } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const DOCS = 'docs/';
/** A link or a picture in Markdown, with the text before it. A text in brackets may have brackets inside, such as `[pools.web]`. */
const LINK = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)/g;

/** Where a file of the repository is in the book: `docs/` is its root. mdBook makes `index.html` of README.md. */
export function placeOf(file) {
  const inside = file.startsWith(DOCS) ? file.slice(DOCS.length) : file;
  return inside.replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The text of a page with its links changed. `file` is the page's path in the repository, `pages` are those of all pages. */
export function linked(content, file, pages) {
  return outsideOfCode(content, (part) => part.replace(LINK, (whole, picture, label, target, heading = '') => {
    if (target === '' || /^[\w+.-]+:/.test(target)) return whole;
    const wanted = posix.normalize(posix.join(posix.dirname(file), target));
    const isOfBook = pages.has(wanted) || wanted.startsWith(DOCS);
    if (!isOfBook) return picture ? '' : label;
    const path = posix.relative(posix.dirname(placeOf(file)), placeOf(wanted));
    return `${picture}[${label}](${path}${heading})`;
  }));
}

/** Changes the text between blocks of code. */
function outsideOfCode(content, change) {
  return content.split(/(^ *```[^]*?^ *```$)/m).map((part, at) => (at % 2 === 0 ? change(part) : part)).join('');
}

function* chaptersOf(items) {
  for (const { Chapter: chapter } of items) {
    if (!chapter) continue; // a title or a line
    yield chapter;
    yield* chaptersOf(chapter.sub_items);
  }
}

function change(book) {
  const chapters = [...chaptersOf(book.items)].filter(({ path }) => path);
  const files = new Map(chapters.map((chapter) => [chapter, posix.normalize(posix.join(DOCS, chapter.path))]));
  const pages = new Set(files.values());
  for (const [chapter, file] of files) {
    chapter.content = linked(chapter.content, file, pages);
    chapter.path = placeOf(file);
  }
  return book;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // mdBook asks `supports RENDERER` first.
  if (process.argv[2] === 'supports') process.exit(0);
  const [, book] = JSON.parse(await text(process.stdin));
  process.stdout.write(JSON.stringify(change(book)));
}
