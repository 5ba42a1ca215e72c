// The value of `require('@hostler/render')`: the function with the other exports as its properties, as in npm hypernova.
// Bundlers use index.ts, from which they drop unused parts.
import * as all from './index.js';

module.exports = Object.assign(all.default, all);
