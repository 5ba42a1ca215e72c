// An app that has nothing more to do once it has listened.
import http from 'node:http';

const server = http.createServer();
server.listen(3000, () => server.close());
