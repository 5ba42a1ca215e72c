// Figures as short text for people. Knows no page.

/** Microseconds as text: 850 µs, 12.3 ms, 2.40 s, 3 min 5 s. */
export function micros(us) {
  if (us == null) return '–';
  if (us < 1000) return `${Math.round(us)} µs`;
  return millis(us / 1000);
}

/** Milliseconds as text. */
export function millis(ms) {
  if (ms == null) return '–';
  if (ms === 0) return '0 ms';
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.floor(ms / 1000);
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
}

/** Bytes as text. */
export function bytes(count) {
  if (count == null) return '–';
  if (count < 1024 * 1024) return `${Math.round(count / 1024)} KiB`;
  if (count < 1024 ** 3) return `${Math.round(count / 1024 ** 2)} MiB`;
  return `${(count / 1024 ** 3).toFixed(1)} GiB`;
}

/** A count: 950, 12.3 k, 4.5 M. */
export function count(number) {
  if (number == null) return '–';
  if (number < 10_000) return String(Math.round(number * 10) / 10);
  return number < 1e6 ? `${(number / 1000).toFixed(1)} k` : `${(number / 1e6).toFixed(1)} M`;
}

/** A share of 1 as per cent. */
export function percent(share) {
  return share == null ? '–' : `${Math.round(share * 100)} %`;
}

/** `1 worker`, `3 workers`. */
export function several(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** The time of day of a number of seconds since 1970. With `hour12: false`, midnight is 24:00 in American English. */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
}

/** With this many slots the event loop decides how many requests a worker gets, and the number says nothing. */
export const MANY = 1000;

/** `3/4`: slots in use and all. */
export function used(inUse, slots) {
  return slots >= MANY ? String(inUse) : `${inUse}/${slots}`;
}

/** All slots of these lanes, as the Status counts them: not fewer than are in use, and of a member that leaves no others. */
export function slotsOf(lanes) {
  return lanes.reduce((all, lane) => all + (lane.left ? lane.in_use : Math.max(lane.slots, lane.in_use)), 0);
}
