// The types of `require('@hostler/render')`: a function with the other exports as its properties. require.ts builds it at
// run time, which TypeScript cannot see.
import * as all from './index.js';

declare const hypernova: typeof all.default & typeof all;
declare namespace hypernova {
  type Payload = all.Payload;
}
export = hypernova;
