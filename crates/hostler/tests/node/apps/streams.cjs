// Answers in pieces: a page that waits for a file, events, silence, chunks, a flood; GET /log tells what closed.
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { createElement: h, Suspense, use } = require('react');
const { renderToPipeableStream } = require('react-dom/server');

const exists = (name) => fs.existsSync(path.join(process.env.TEST_FOLDER, name));
const log = [];

function appearanceOf(name) {
  return new Promise((resolve) => {
    const look = setInterval(() => {
      if (!exists(name)) return;
      clearInterval(look);
      resolve(`${name} is there`);
    }, 5);
  });
}

function Late({ text }) {
  return h('p', null, use(text));
}

const answers = {
  '/react'(req, res) {
    const text = appearanceOf('late');
    const page = h('main', null, h('h1', null, 'early'), h(Suspense, { fallback: 'wait' }, h(Late, { text })));
    res.setHeader('content-type', 'text/html');
    const { pipe } = renderToPipeableStream(page, { onShellReady: () => pipe(res) });
  },
  '/events'(req, res) {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    let number = 0;
    const beat = setInterval(() => res.write(`data: ${(number += 1)}\n\n`), 50);
    res.on('close', () => {
      clearInterval(beat);
      log.push('events closed');
    });
  },
  '/silence'(req, res) {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: the only one\n\n');
    res.on('close', () => log.push('silence closed'));
  },
  async '/chunks'(req, res) {
    res.on('close', () => log.push('chunks closed'));
    res.write('first ');
    await appearanceOf('late');
    res.end('last');
  },
  async '/flood'(req, res) {
    res.on('finish', () => log.push('flood finished'));
    const flow = setInterval(() => res.write('x'.repeat(65_536)), 10);
    await appearanceOf('late');
    clearInterval(flow);
    res.end();
  },
  '/log': (req, res) => res.end(JSON.stringify(log)),
};

http.createServer((req, res) => answers[req.url](req, res)).listen(3000);
