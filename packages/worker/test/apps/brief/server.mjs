// An app that has nothing more to do after it listens.
import http from 'node:http';

const server = http.createServer();
server.listen(3000, () => server.close());
