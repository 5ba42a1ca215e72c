// The built files for the browser, read once at the start and sent from memory. Their names contain the hash of their
// content.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const TYPES = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', woff2: 'font/woff2', svg: 'image/svg+xml', map: 'application/json' };
const ENCODINGS = { br: '.br', gzip: '.gz' };

/** `{ files, script, shell, assets }` */
export function readBuilt(folder, base) {
  const { files, script, shells } = JSON.parse(readFileSync(join(folder, 'built.json'), 'utf8'));
  const shell = shells[base];
  if (!shell) throw new Error(`built for the paths ${Object.keys(shells).map((each) => each || '/').join(' and ')} only; build it for this one: BASE_PATH=${base} npm run build`);
  return { files, script, shell: readFileSync(join(folder, shell), 'utf8'), assets: readAssets(join(folder, 'assets')) };
}

function readAssets(folder) {
  const bodies = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  const names = [...bodies.keys()].filter((name) => !Object.values(ENCODINGS).some((ending) => name.endsWith(ending)));
  return new Map(
    names.map((name) => {
      const encoded = Object.entries(ENCODINGS).flatMap(([encoding, ending]) => (bodies.has(name + ending) ? [[encoding, bodies.get(name + ending)]] : []));
      return [name, { type: TYPES[name.split('.').at(-1)], body: bodies.get(name), encoded }];
    }),
  );
}

/** Returns whether there is such a file. */
export function sendAsset({ request, response, assets, name }) {
  const asset = assets.get(name);
  if (!asset) return false;
  const accepted = (request.headers['accept-encoding'] ?? '').split(',').map((part) => part.trim());
  const [encoding, body] = asset.encoded.find(([each]) => accepted.includes(each)) ?? [undefined, asset.body];
  response.writeHead(200, {
    'content-type': asset.type,
    'content-length': body.length,
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
    vary: 'accept-encoding',
    ...(encoding && { 'content-encoding': encoding }),
  });
  response.end(body);
  return true;
}
