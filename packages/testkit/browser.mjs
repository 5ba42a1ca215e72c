// Debian's Chromium, headless and without background activity. Knows no page.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const PROGRAM = process.env.CHROMIUM ?? '/usr/bin/chromium';
// Without these flags Chromium connects to its vendor's hosts at every start. QUIC and a GPU are of no use here.
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts a browser. The caller closes it. */
export function openBrowser() {
  if (!existsSync(PROGRAM)) {
    throw new Error(`${PROGRAM} is missing. On Debian: apt-get install chromium. Elsewhere: set CHROMIUM to its path.`);
  }
  return chromium.launch({ executablePath: PROGRAM, headless: true, args: ARGS });
}
