// An app that closes the IPC channel to its parent process.
import http from 'node:http';

const server = http.createServer((req, res) => {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'disconnects', connected: process.connected, port: server.address().port }));
});
server.listen(3000, () => {
  process.on('disconnect', () => console.log('disconnected'));
  process.disconnect();
});
