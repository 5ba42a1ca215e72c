// Data in an HTML comment in a script element, encoded so that it can end neither of them. Knows nothing of the markup
// around it.

const OPEN = '<!--';
const CLOSE = '-->';

/**
 * JSON that Hypernova's browser code can read. `&` and `>` become entities, as in Hypernova. `<` becomes its JSON escape;
 * otherwise a `</script >` in the data would end the element.
 */
export function encode(data: unknown): string {
  const json: string | undefined = JSON.stringify(data);
  if (json === undefined) {
    throw new TypeError(`The data of a Hypernova component must be a JSON value; ${data === undefined ? 'undefined' : `a ${typeof data}`} is not one`);
  }
  return json.replace(/</g, '\\u003c').replace(/&/g, '&amp;').replace(/>/g, '&gt;');
}

/** Decodes the output of `encode`, and that of Hypernova's own server and clients. */
export function decode(text: string): unknown {
  return JSON.parse(text.replace(/&gt;/g, '>').replace(/&amp;/g, '&'));
}

export function wrap(encoded: string): string {
  return OPEN + encoded + CLOSE;
}

/** Reverses `wrap`. The client hypernova of PyPI writes white space around the comment. */
export function unwrap(content: string): string {
  return content.trim().slice(OPEN.length, -CLOSE.length);
}
