// Numbered events that go on after Last-Event-ID; a long poll; a page. Writes each closed stream into TEST_FOLDER.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');

const file = (name) => path.join(process.env.TEST_FOLDER, name);

function events(req, res) {
  let id = Number(req.headers['last-event-id'] ?? 0);
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const send = () => res.write(`id: ${(id += 1)}\nretry: 100\ndata: ${process.pid}\n\n`);
  send();
  const beat = setInterval(send, 20);
  res.on('close', () => {
    clearInterval(beat);
    fs.appendFileSync(file('closed'), `${process.pid}\n`);
  });
}

/** Answers when the file is there. */
function poll(req, res) {
  const look = setInterval(() => {
    if (!fs.existsSync(file('news'))) return;
    clearInterval(look);
    res.end('news');
  }, 5);
}

http
  .createServer((req, res) => {
    if (req.url === '/events') return events(req, res);
    if (req.url === '/poll') return poll(req, res);
    if (req.url === '/exit') return process.exit(1);
    return res.end('page');
  })
  .listen(3000);
