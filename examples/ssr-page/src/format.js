// Amounts and days as text.

const LOCALE = 'en-IE';
const DAYS = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short', timeZone: 'UTC' });

export function days({ from, to }) {
  return DAYS.formatRange(from, to);
}

// Formats with the locale at each call, as most pages do. It is a third of the cost of this page, which is typical of a
// render.
export function euros(amount) {
  return amount.toLocaleString(LOCALE, { style: 'currency', currency: 'EUR', maximumFractionDigits: 0 });
}

export function number(value) {
  return value.toLocaleString(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}
