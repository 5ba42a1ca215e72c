// Finds Hypernova's markup in a browser's document: the places of a component, and its data. Knows no framework.
import { decode, unwrap } from './data.js';
import { attributeName, DATA_ID, DATA_KEY, keyOf } from './markup.js';

export interface Payload {
  node: Element;
  data: unknown;
  id: string;
}

/** All places of the component on the page. */
export function load(name: string): Payload[] {
  return placesOf(name).map(payloadOf);
}

/**
 * All elements of a component. hypernova-client (npm) and the PHP client write the unchanged name as the key when the renderer
 * does not answer. So `Search.js` is `Searchjs` in the markup of a server and `Search.js` in theirs: both are found.
 */
export function placesOf(name: string): Element[] {
  const keys = [...new Set([keyOf(name), name])];
  return [...document.querySelectorAll(keys.map((key) => `div${selector({ [DATA_KEY]: key })}`).join())];
}

export function payloadOf(node: Element): Payload {
  const key = node.getAttribute(`data-${DATA_KEY}`) ?? '';
  const id = node.getAttribute(`data-${DATA_ID}`);
  if (id === null) return { node, data: fromNext(node, key), id: '' };
  return { node, data: fromScript({ [DATA_KEY]: key, [DATA_ID]: id }), id };
}

/** The data of the script behind the element. The client hypernova of PyPI writes no id, so another place of the page may have the same key. */
function fromNext(node: Element, key: string): unknown {
  const script = node.nextElementSibling;
  return script?.matches(`script${selector({ [DATA_KEY]: key })}`) ? dataOf(script) : null;
}

/** The data of the first script with these attributes. Null if there is none. */
export function fromScript(attributes: Record<string, string>): unknown {
  const script = document.querySelector(`script${selector(attributes)}`);
  return script && dataOf(script);
}

function dataOf(script: Element): unknown {
  return decode(unwrap(script.innerHTML));
}

function selector(attributes: Record<string, string>): string {
  return Object.entries(attributes).map(([name, value]) => `[${attributeName(name)}="${quoted(value)}"]`).join('');
}

/** Escapes a value for a CSS string. */
function quoted(value: string): string {
  return value.replace(/["\\\n\r\f]/g, (char) => `\\${char.charCodeAt(0).toString(16)} `);
}
