// Takes a picture of a page with Debian's headless Chromium: node scripts/screenshot.mjs URL FILE [WIDTHxHEIGHT] [--full].
import { openBrowser } from '@hostler/testkit';

const options = process.argv.slice(2).filter((word) => word.startsWith('--'));
const [url, file, size = '1440x1000'] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
if (!url || !file || !/^\d+x\d+$/.test(size)) {
  console.error('usage: node scripts/screenshot.mjs URL FILE [WIDTHxHEIGHT] [--full]');
  process.exit(2);
}
const [width, height] = size.split('x').map(Number);
const browser = await openBrowser();
try {
  const page = await browser.newPage({ viewport: { width, height } });
  const complaints = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  const response = await page.goto(url, { waitUntil: 'networkidle', timeout: 30_000 });
  await page.screenshot({ path: file, fullPage: options.includes('--full') });
  const elements = await page.evaluate('document.querySelectorAll("*").length');
  console.log(`${file}: ${url} answered ${response.status()}, "${await page.title()}", ${elements} elements`);
  for (const complaint of complaints) console.error(`the page reports: ${complaint}`);
} finally {
  await browser.close();
}
