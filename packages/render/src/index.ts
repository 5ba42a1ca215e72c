// The part of the package for server and browser: writes the markup on the server, and finds it in the browser. Knows no
// server.
import { fromScript, load } from './load.js';
import { serialize, toScript } from './markup.js';

export { decode, encode } from './data.js';
export { fromScript, load, type Payload } from './load.js';
export { DATA_ID, DATA_KEY, keyOf, newId, serialize, toScript } from './markup.js';

/** Calls the function for the side on which the code runs. */
function hypernova<Server, Client>(runner: { server(): Server; client(): Client }): Server | Client {
  return typeof window === 'undefined' ? runner.server() : runner.client();
}

// The annotation lets a bundler drop what is not imported.
export default /* @__PURE__ */ Object.assign(hypernova, { fromScript, load, serialize, toScript });
