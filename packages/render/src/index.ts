// The part of the package for both sides of the wire: markup on the server, finding it again in the browser. Knows no server.
import { fromScript, load } from './load.js';
import { serialize, toScript } from './markup.js';

export { decode, encode } from './data.js';
export { fromScript, load, type Payload } from './load.js';
export { DATA_ID, DATA_KEY, keyOf, newId, serialize, toScript } from './markup.js';

/** Calls the one that fits where the code runs. */
function hypernova<Server, Client>(runner: { server(): Server; client(): Client }): Server | Client {
  return typeof window === 'undefined' ? runner.server() : runner.client();
}

// Annotated, so that a bundler drops what nobody imports.
export default /* @__PURE__ */ Object.assign(hypernova, { fromScript, load, serialize, toScript });
