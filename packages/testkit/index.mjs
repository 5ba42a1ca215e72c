// The shared helpers of the JavaScript tests, in one place for imports. Knows no test.
export { openBrowser } from './browser.mjs';
export { cacheTests } from './cache-tests.mjs';
export { eventually } from './eventually.mjs';
export { hostlerProgram, startHostler } from './hostler.mjs';
export { kosokuProgram } from './kosoku.mjs';
export { natsProgram, startNats } from './nats.mjs';
export { freePort } from './port.mjs';
