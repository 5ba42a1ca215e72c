// A tab of its own for a test, and what it complained of.

/** `complaints` holds every warning and error on the console, each exception, and each failed request of its own. */
export async function openPage(t, browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  t.after(() => context.close());
  const tab = await context.newPage();
  tab.setDefaultTimeout(60_000); // a machine under load is slow, and a test that fails has time
  const complaints = [];
  tab.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  tab.on('pageerror', (error) => complaints.push(error.message));
  return { tab, complaints };
}
