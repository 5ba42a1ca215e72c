// Express 5 as CommonJS, behind a proxy on the same machine, with an access log that is written after the response.
const express = require('express');

const app = express();
app.set('trust proxy', 'loopback');

app.use((req, res, next) => {
  res.on('close', () => setImmediate(() => console.log(`access ${req.ip} ${req.method} ${req.url}`)));
  next();
});
app.get('/', (req, res) => {
  res.json({ app: 'express', ip: req.ip, proto: req.protocol, port: server.address().port });
});

const server = app.listen(3000);
