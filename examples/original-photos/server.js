// Flickr Original: redirects to the original of a Flickr photo. Its own port, its own key, no word about who runs it.
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
// A burst connects all at once: what does not fit into the backlog would be refused before anybody has seen it.
server.listen(settings.port, 4096, () => {
  const at = server.address();
  console.log(`listening on ${typeof at === 'string' ? at : `http://localhost:${at.port}`}, asking ${settings.flickrUrl.href}`);
});

server.once('error', (error) => {
  console.error(`cannot listen on ${settings.port}: ${error.code}`);
  process.exit(1);
});

/** Requests under way are answered, each within the timeouts of its lookup; then their connections are of no more use. */
function stop() {
  server.close();
  setInterval(() => server.closeIdleConnections(), 100).unref();
}

process.once('SIGTERM', stop);
process.once('SIGINT', stop);
