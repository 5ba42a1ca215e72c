// Prices, counts and months as text. Does not use the machine's locale, because server and browser must write the same.

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];

export function euros(amount) {
  return `€${String(amount).replace(/\B(?=(\d{3})+$)/g, ',')}`;
}

export function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** "2026-11" becomes "November 2026". */
export function monthName(month) {
  const [year, number] = month.split('-').map(Number);
  return `${MONTHS[number - 1]} ${year}`;
}

export function stars(rating) {
  return rating.toFixed(2).replace(/0$/, '');
}
