// The two lookups with plain node:http, without any needless work between a request and its response.
import { createServer } from 'node:http';
import { cities, postalCodes } from './data.mjs';

const codes = postalCodes(process.env.POSTAL);
const cityOf = process.env.GEO ? await cities(process.env.GEO) : undefined;
const BY_ZIP = '/api/zipinfo/byzip/';
const JSON_TEXT = 'application/json';

const server = createServer((request, response) => {
  if (request.url === '/get_city') {
    const { body, length } = cityOf(addressOf(request));
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': length, 'cache-control': 'private, no-store' }).end(body);
    return;
  }
  const found = request.url.startsWith(BY_ZIP) ? codes.get(request.url.slice(BY_ZIP.length)) : undefined;
  if (found) {
    const { body, length, etag } = found;
    response.writeHead(200, { 'content-type': JSON_TEXT, 'content-length': length, 'cache-control': 'public, max-age=7200', etag }).end(body);
  } else response.writeHead(404, { 'content-type': JSON_TEXT, 'content-length': 2 }).end('{}');
});
server.keepAliveTimeout = 600_000;
server.listen(process.env.PORT, '127.0.0.1', 4096);

/** The address that the trusted proxy names. The other services read the same. */
function addressOf(request) {
  const said = request.headers['x-forwarded-for'];
  return said === undefined ? request.socket.remoteAddress : said.slice(said.lastIndexOf(',') + 1).trim();
}
