// An app that does not stop when it is asked to.
import http from 'node:http';

process.on('SIGTERM', () => console.log('SIGTERM, but it stays'));
http.createServer((req, res) => res.end('still here')).listen(3000);
