// Express 5 as an ES module that awaits something before it listens.
import { setTimeout as delay } from 'node:timers/promises';
import express from 'express';

const app = express();
app.set('trust proxy', 'loopback');
const settings = await delay(10, { port: 3000 });

app.get('/', (req, res) => {
  res.json({ app: 'express', ip: req.ip, proto: req.protocol, port: server.address().port });
});

const server = await new Promise((resolve) => {
  const listening = app.listen(settings.port, () => resolve(listening));
});
