// Flickr Original: redirects to the original of a Flickr photo. Its own port, its own API key, and no mention of Hostler.
import { createServer } from 'node:http';
import { createApp } from './src/app.js';
import { readSettings } from './src/settings.js';

let settings;
try {
  settings = readSettings(process.env);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

const server = createServer(createApp(settings));
// A burst connects all at once. Connections beyond the backlog would be refused by the kernel.
server.listen(settings.port, 4096, () => {
  const at = server.address();
  console.log(`listening on ${typeof at === 'string' ? at : `http://localhost:${at.port}`}, asking ${settings.flickrUrl.href}`);
});

server.once('error', (error) => {
  console.error(`cannot listen on ${settings.port}: ${error.code}`);
  process.exit(1);
});

/** Running requests are answered, each within the timeouts of its lookup. Then their connections are closed. */
function stop() {
  server.close();
  setInterval(() => server.closeIdleConnections(), 100).unref();
}

process.once('SIGTERM', stop);
process.once('SIGINT', stop);
