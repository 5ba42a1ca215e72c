// The two lookups on plain node:http, nothing between a request and its answer that it does not need.
import { createServer } from 'node:http';
import { cities, postalCodes } from './data.mjs';

const codes = postalCodes(process.env.POSTAL);
const cityOf = process.env.GEO ? await cities(process.env.GEO) : undefined;
const BY_ZIP = '/api/zipinfo/byzip/';

const server = createServer((request, response) => {
  if (request.url.startsWith(BY_ZIP)) {
    const found = codes.get(request.url.slice(BY_ZIP.length));
    if (!found) return send(response, 404, '{}', {});
    return send(response, 200, found.body, { 'cache-control': 'public, max-age=7200', etag: found.etag });
  }
  if (request.url === '/get_city') return send(response, 200, `{"city":${JSON.stringify(cityOf(addressOf(request)))}}`, { 'cache-control': 'private, no-store' });
  send(response, 404, '{}', {});
});
server.keepAliveTimeout = 600_000;
server.listen(process.env.PORT, '127.0.0.1', 4096);

/** What a trusted proxy says, as the others are told to take it. */
function addressOf(request) {
  return request.headers['x-forwarded-for']?.split(',').at(-1).trim() ?? request.socket.remoteAddress;
}

function send(response, status, body, headers) {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers }).end(body);
}
