// Writes Hypernova's markup as text: a div for the component, and a script for its data. Knows no browser.
import { encode, wrap } from './data.js';

export const DATA_KEY = 'hypernova-key';
export const DATA_ID = 'hypernova-id';

/** The component's name as the markup has it. Two names can have the same key: `a.b` and `ab`. */
export function keyOf(name: string): string {
  return name.replace(/\W/g, '');
}

/** A UUIDv4. It is also random enough where `crypto` is missing (a page without TLS, a bare VM context). */
export function newId(): string {
  const { crypto } = globalThis as { crypto?: Partial<Crypto> };
  if (crypto?.randomUUID) return crypto.randomUUID();
  return '10000000-1000-4000-8000-100000000000'.replace(/[018]/g, (digit) => (+digit ^ ((Math.random() * 16) >> (+digit / 4))).toString(16));
}

/** The whole markup of a component. `id` must be unique on the page. */
export function serialize(name: string, html: string, data: unknown, id: string = newId()): string {
  const attributes = inMarkup({ [DATA_KEY]: keyOf(name), [DATA_ID]: id });
  return `<div ${attributes}>${html}</div>\n${script(attributes, data)}`;
}

/** A script element with `data`. `fromScript` with the same attributes finds it. */
export function toScript(attributes: Record<string, string>, data: unknown): string {
  return script(inMarkup(attributes), data);
}

function script(attributes: string, data: unknown): string {
  return `<script type="application/json" ${attributes}>${wrap(encode(data))}</script>`;
}

export function attributeName(name: string): string {
  return `data-${name.toLowerCase().replace(/[^0-9a-z_-]/g, '')}`;
}

function inMarkup(attributes: Record<string, string>): string {
  return Object.entries(attributes).map(([name, value]) => `${attributeName(name)}="${escape(value)}"`).join(' ');
}

function escape(value: string): string {
  return value.replace(/&/g, '&amp;').replace(/"/g, '&quot;');
}
