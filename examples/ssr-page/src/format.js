// Amounts and days as people read them.

const LOCALE = 'en-IE';
const DAYS = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short', timeZone: 'UTC' });

export function days({ from, to }) {
  return DAYS.formatRange(from, to);
}

// A locale-aware text for each call, as most pages do it: a third of what this page costs, and typical of a render.
export function euros(amount) {
  return amount.toLocaleString(LOCALE, { style: 'currency', currency: 'EUR', maximumFractionDigits: 0 });
}

export function number(value) {
  return value.toLocaleString(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}
