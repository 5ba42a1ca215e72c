// Writes the lists of programs by which Hostler recognises crawlers, from the npm package crawler-user-agents. Knows no User-Agent of a person.
//
// node scripts/crawlers.mjs writes the lists, and prints what it leaves out. scripts/crawlers/choices.mjs has the decisions.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ALSO_OTHER, INSTEAD, LEFT_OUT, MONITORS, NO_CRAWLERS, OTHER_PROGRAMS } from './crawlers/choices.mjs';
import { root } from './steps.mjs';

export const FOLDER = join(root, 'crates/hostler-engine/src/gateway/crawler');
const PACKAGE = 'crawler-user-agents';
/** Hostler knows each crawler whose name has one of these parts (`crawler/mod.rs`). The list need not have it. */
const PARTS = /bot|crawl|spider|slurp/i;

/** The files of FOLDER as {name: text}, and what is in no list as [{pattern, reason}]. */
export function makeLists() {
  const list = createRequire(import.meta.url).resolve(PACKAGE);
  const folder = dirname(list);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const entries = JSON.parse(readFileSync(list, 'utf8'));
  checkChoices(new Set(entries.map((entry) => entry.pattern)));
  const lists = { crawlers: new Map(), others: new Map(), leftOut: [] };
  for (const entry of entries) addTo(lists, entry);
  for (const text of ALSO_OTHER) add(lists.others, text);
  const licence = readFileSync(join(folder, 'LICENSE'), 'utf8');
  const copyright = /^Copyright.*$/m.exec(licence)[0];
  const head = (what) => `# ${what}
# Generated from the npm package ${PACKAGE} ${version}: MIT License, ${copyright} (${PACKAGE}.LICENSE).
# Do not edit. To make it again: node scripts/crawlers.mjs
# One name a line, in any case. With ^ before it: only at the start of the User-Agent, or behind \`compatible;\`.
`;
  const text = (what, names) => `${head(what)}${[...names.values()].sort(byName).join('\n')}\n`;
  return {
    files: {
      'crawlers.txt': text('Crawlers whose names have none of the parts that Hostler knows.', lists.crawlers),
      'other_programs.txt': text('Programs that are no crawlers, even if their User-Agent has the URL of a page about them.', lists.others),
      [`${PACKAGE}.LICENSE`]: licence,
    },
    leftOut: lists.leftOut,
  };
}

/** A decision about a pattern that the package does not have any more would do nothing, and nobody would see it. */
function checkChoices(known) {
  const chosen = [...[LEFT_OUT, OTHER_PROGRAMS].flatMap((reasons) => Object.values(reasons).flat()), ...Object.keys(INSTEAD), ...MONITORS];
  const unknown = chosen.filter((pattern) => !known.has(pattern));
  if (unknown.length > 0) throw new Error(`${PACKAGE} has no such patterns: ${unknown.join('  ')} (scripts/crawlers/choices.mjs)`);
}

function addTo({ crawlers, others, leftOut }, { pattern, instances, tags }) {
  const leave = (reason) => leftOut.push({ pattern, reason });
  const isOther = tags.some((tag) => NO_CRAWLERS.includes(tag)) || reasonOf(OTHER_PROGRAMS, pattern);
  const reason = reasonOf(LEFT_OUT, pattern);
  if (reason) return leave(reason);
  const names = INSTEAD[pattern] ? [INSTEAD[pattern]] : literals(pattern);
  if (!names) return leave('is more than a name');
  if (MONITORS.includes(pattern)) return names.forEach((name) => add(others, name));
  for (const name of names) {
    if (PARTS.test(name.split('/')[0])) leave('has a part that Hostler knows');
    else if (isOther) add(others, name);
    else add(crawlers, startsAll(name, instances) ? `^${name}` : name);
  }
}

/** Case does not count, so one spelling is enough. The first one stays. */
function add(list, name) {
  const key = name.toLowerCase();
  if (!list.has(key)) list.set(key, name);
}

/** If all known User-Agents of a program begin with its name, it counts only there and behind `compatible;`: a browser has other names there. */
function startsAll(name, instances) {
  return !name.startsWith('^') && instances.length > 0 && instances.every((each) => each.toLowerCase().startsWith(name.toLowerCase()));
}

/**
 * The names that a pattern stands for. `undefined` if it is more than names. A name has to begin where a word begins, so `(^| )` says nothing.
 */
export function literals(pattern) {
  const alternatives = pattern.split('|').length > 1 && !pattern.includes('(') ? pattern.split('|') : [pattern];
  const names = alternatives.flatMap((each) => {
    const start = each.startsWith('^') ? '^' : '';
    const simple = each
      .replace(/^\(\^\| \)|^\^/, '')
      // [cC] is one letter in any case.
      .replace(/\[(.)(.)\]/g, (all, one, other) => (one.toLowerCase() === other.toLowerCase() ? one : all));
    return expanded(simple).map((text) => (/\\[a-z\d]|(?<!\\)[[\](){}|*+?^$.]/i.test(text) ? undefined : start + text.replace(/\\(.)/g, '$1').trim()));
  });
  return names.includes(undefined) ? undefined : names;
}

/** a(b|c)d as [abd, acd]. */
function expanded(text) {
  const found = /(?<!\\)\(([^()\\]*)\)/.exec(text);
  if (!found) return [text];
  const [all, inside] = found;
  return inside.split('|').flatMap((each) => expanded(text.slice(0, found.index) + each + text.slice(found.index + all.length)));
}

function reasonOf(reasons, pattern) {
  return Object.entries(reasons).find(([, patterns]) => patterns.includes(pattern))?.[0];
}

/** By the name in lower case, and by code units, so that the order is the same everywhere. */
function byName(a, b) {
  const [first, second] = [a, b].map((name) => name.replace('^', '').toLowerCase());
  return first < second ? -1 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { files, leftOut } = makeLists();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(FOLDER, name), text);
  for (const reason of new Set(leftOut.map((each) => each.reason))) {
    const patterns = leftOut.filter((each) => each.reason === reason).map((each) => each.pattern);
    console.log(`${reason} (${patterns.length}):\n  ${patterns.join('\n  ')}`);
  }
}
