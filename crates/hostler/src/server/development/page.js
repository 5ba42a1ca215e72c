// Asks Hostler twice a second whether the app starts, and loads the page again then. Inside the page of a failed boot.
(() => {
  'use strict';
  const page = document.documentElement;
  const own = page.dataset.state;
  async function look() {
    let wait = 500;
    try {
      const answer = await fetch(location.href, { headers: { 'Hostler-Development': own }, cache: 'no-store' });
      const state = answer.headers.get('Hostler-Development');
      if (state !== own && state !== 'restarting') return location.reload();
      page.dataset.now = state;
    } catch {
      page.dataset.now = 'away';
      wait = 1500;
    }
    setTimeout(look, wait);
  }
  setTimeout(look, 500);
})();
