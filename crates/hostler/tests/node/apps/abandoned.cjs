// Tells in a diary which clients have left. /answer: begins at once, one word each 20 ms, without end. All else answers after ?ms=50, or
// when ?until=FILE exists, without blocking the event loop. Has never heard of Hostler.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');

const inFolder = (name) => path.join(process.env.TEST_FOLDER, name);
const note = (what, url) => fs.appendFileSync(inFolder('diary'), `${JSON.stringify({ what, url })}\n`);

const server = http.createServer(async (req, res) => {
  note('begins', req.url);
  res.on('close', () => note(res.writableFinished ? 'ends' : 'left', req.url));
  const url = new URL(req.url, 'http://app');
  if (url.pathname === '/answer') {
    res.setHeader('content-type', 'application/x-ndjson');
    while (!res.destroyed) {
      res.write('"word"\n');
      await pause(20);
    }
    return;
  }
  const { ms = '0', until } = Object.fromEntries(url.searchParams);
  const over = Date.now() + Number(ms);
  while (until ? !fs.existsSync(inFolder(until)) : Date.now() < over) await pause(2);
  res.end('ok');
});
server.listen(3000);
