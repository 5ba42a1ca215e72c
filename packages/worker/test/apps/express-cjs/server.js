// Express 5 as CommonJS, behind a proxy on the same machine.
const express = require('express');

const app = express();
app.set('trust proxy', 'loopback');

app.get('/', (req, res) => {
  res.json({ hello: 'express', ip: req.ip, proto: req.protocol, local: req.socket.localPort });
});

const server = app.listen(3000, () => {
  console.log(`express listens on ${JSON.stringify(server.address())}`);
});
