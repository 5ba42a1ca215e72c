// Data inside an HTML comment inside a script element, so that nothing in it can end either. Knows no markup around it.

const OPEN = '<!--';
const CLOSE = '-->';

/**
 * JSON that Hypernova's browser code reads back. `&` and `>` become entities, as Hypernova has it; `<` becomes its JSON escape,
 * without which a `</script >` in the data would end the element.
 */
export function encode(data: unknown): string {
  const json: string | undefined = JSON.stringify(data);
  if (json === undefined) {
    throw new TypeError(`The data of a Hypernova component must be a JSON value; ${data === undefined ? 'undefined' : `a ${typeof data}`} is none`);
  }
  return json.replace(/</g, '\\u003c').replace(/&/g, '&amp;').replace(/>/g, '&gt;');
}

/** What `encode` was given, or what Hypernova's own server and clients have encoded. */
export function decode(text: string): unknown {
  return JSON.parse(text.replace(/&gt;/g, '>').replace(/&amp;/g, '&'));
}

export function wrap(encoded: string): string {
  return OPEN + encoded + CLOSE;
}

export function unwrap(content: string): string {
  return content.slice(OPEN.length, -CLOSE.length);
}
