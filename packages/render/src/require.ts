// What `require('@hostler/render')` gives: the function, with the rest on it, as npm hypernova's is. Bundlers get index.ts, of which they drop what is not used.
import * as all from './index.js';

module.exports = Object.assign(all.default, all);
