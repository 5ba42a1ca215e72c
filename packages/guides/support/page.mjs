// Reads a guide: its code blocks, by heading, language and file name. Does not run them.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const GUIDES = fileURLToPath(new URL('../../../docs/guide/', import.meta.url));
/** The first line of a block that is a file: `# hostler.toml`, `// src/main.ts`, `<!-- app/app.vue -->`. */
const FILE_NAME = /^(?:#|\/\/|<!--|\/\*) ?([\w./+-]+\.\w+)(?: -->| \*\/)?$/;

/** A page of docs/guide, such as `next`. */
export function readPage(name) {
  return new Page(name, readFileSync(`${GUIDES}${name}.md`, 'utf8'));
}

export class Page {
  constructor(name, text) {
    this.name = name;
    this.text = text;
    this.blocks = [...blocksOf(text)];
  }

  /** The page with other words, such as a port that is free on this machine. */
  with(words) {
    return new Page(this.name, Object.entries(words).reduce((text, [from, to]) => text.replaceAll(from, to), this.text));
  }

  /** All blocks below a heading, in the order of the page. */
  section(heading) {
    const found = this.blocks.filter((block) => block.heading === heading);
    if (found.length === 0) throw new Error(`${this.name}.md has no code below the heading "${heading}"`);
    return found;
  }

  /** The one block that is this file, below `heading` if the page has the file twice. */
  file(name, heading) {
    return this.#one(`file ${name}`, (block) => block.file === name && (!heading || block.heading === heading));
  }

  /** The one shell block below a heading. */
  commands(heading) {
    return this.#one(`shell block below "${heading}"`, (block) => block.language === 'sh' && block.heading === heading);
  }

  #one(what, matches) {
    const found = this.blocks.filter(matches);
    if (found.length !== 1) throw new Error(`${this.name}.md must have one ${what}, and has ${found.length}`);
    return found[0].text;
  }
}

/** Astro's components begin with a fence of their own. */
function fileOf([first, second = '']) {
  return FILE_NAME.exec(first === '---' ? second : first)?.[1];
}

function* blocksOf(text) {
  let heading = '';
  let block;
  for (const line of text.split('\n')) {
    if (block) {
      if (line === '```') {
        yield { ...block, text: block.lines.map((each) => `${each}\n`).join(''), file: fileOf(block.lines) };
        block = undefined;
      } else {
        block.lines.push(line);
      }
    } else if (line.startsWith('```')) {
      block = { heading, language: line.slice(3), lines: [] };
    } else if (line.startsWith('#')) {
      heading = line.replace(/^#+ /, '');
    }
  }
}
