// A STAND-IN for Flickr's API, for the tests and the demo. Nothing here comes from Flickr; a program draws the photos.
import { createServer } from 'node:http';
import { createStandIn } from './stand-in/api.js';

const whole = (name, otherwise) => {
  const text = process.env[name] ?? String(otherwise);
  if (/^\d{1,9}$/.test(text)) return Number(text);
  console.error(`${name} must be a whole number, not "${text}"`);
  process.exit(1);
};

const server = createServer(createStandIn({
  keys: (process.env.STAND_IN_KEYS ?? 'demo').split(','),
  latency: whole('LATENCY_MS', 200),
  perHour: whole('LIMIT_PER_HOUR', 3600),
}));
server.keepAliveTimeout = 65_000;
server.listen(process.env.PORT || 3001, 4096, () => {
  const at = server.address();
  console.log(`a stand-in for Flickr's API listens on ${typeof at === 'string' ? at : `http://localhost:${at.port}/services/rest/`}`);
});
process.once('SIGTERM', () => server.close());
process.once('SIGINT', () => server.close());
