// What the JavaScript tests share, in one place to import from. Knows no test.
export { openBrowser } from './browser.mjs';
export { cacheTests } from './cache-tests.mjs';
export { eventually } from './eventually.mjs';
export { hostlerProgram, startHostler } from './hostler.mjs';
export { kosokuProgram } from './kosoku.mjs';
export { natsProgram, startNats } from './nats.mjs';
export { freePort } from './port.mjs';
