// A JSON API on Express 5, as a team would write it: its own port, its own data, and no mention of Hostler.
import express from 'express';
import { listings } from './listings.js';
import { stays } from './stay-routes.js';

const PAGE = 20;
const BODY = { limit: '1mb' }; // without it, each parser has its own limit of 100 kB
const app = express();
app.disable('x-powered-by');
app.set('trust proxy', 'loopback'); // only a proxy on this machine may name the client

app.use('/api', express.json(BODY), express.urlencoded({ ...BODY, extended: false }), express.text(BODY));

app.get('/api/listings', (request, response) => {
  const from = wholeNumber(request.query.from ?? '0');
  if (from === undefined) return response.status(400).json({ error: '"from" must be a whole number' });
  const country = request.query.country;
  const found = country ? listings.filter((listing) => listing.country === country) : listings;
  response.json({ total: found.length, from, listings: found.slice(from, from + PAGE) });
});

app.get('/api/listings/:id', (request, response) => {
  const listing = listings.find(({ id }) => String(id) === request.params.id);
  if (!listing) return response.status(404).json({ error: `no listing ${request.params.id}` });
  response.json(listing);
});

app.use('/api/stays', stays);

app.post('/api/echo', (request, response) => {
  response.json({ type: request.get('content-type') ?? null, length: Number(request.get('content-length') ?? 0), body: request.body ?? null });
});

app.get('/api/whoami', (request, response) => {
  response.json({
    ip: request.ip,
    ips: request.ips,
    protocol: request.protocol,
    host: request.host,
    headers: request.headers,
    process: process.pid,
    instance: process.env.NODE_APP_INSTANCE ?? null,
  });
});

app.use((request, response) => {
  response.status(404).json({ error: `nothing at ${request.method} ${request.path}` });
});

// Express recognises an error handler by its four parameters.
app.use((error, request, response, _next) => {
  const status = error.status ?? 500;
  if (status >= 500) console.error(error);
  response.status(status).json({ error: status >= 500 ? 'internal error' : error.message });
});

const server = app.listen(process.env.PORT ?? 3000, (error) => {
  if (error) throw error;
  console.log(`listening on http://localhost:${server.address().port}`);
});

process.on('SIGTERM', () => server.close());

function wholeNumber(text) {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
