// An app that sends requests to a URL, such as its own, as Next.js does when it forwards a Server Action: GET /?way=fetch&url=http://localhost:PORT/own
const http = require('node:http');
const net = require('node:net');

const ways = {
  fetch: async (url) => (await fetch(url, { method: 'POST', body: 'own' })).text(),
  http: (url) => new Promise((resolve, reject) => {
    const request = http.get(url, { agent: false }, async (response) => {
      let text = '';
      for await (const piece of response.setEncoding('utf8')) text += piece;
      resolve(text);
    });
    request.on('error', reject);
  }),
  socket: (url) => new Promise((resolve, reject) => {
    const { port, hostname } = new URL(url);
    let text = '';
    const socket = new net.Socket().setEncoding('utf8').on('error', reject);
    socket.on('data', (piece) => (text += piece)).on('end', () => resolve(text.split('\r\n\r\n')[1]));
    socket.connect(port, hostname.replace(/[[\]]/g, ''), () => socket.write('GET /own HTTP/1.0\r\n\r\n'));
  }),
};

const server = http.createServer(async (req, res) => {
  const { pathname, searchParams } = new URL(req.url, 'http://app.example');
  if (pathname === '/own') {
    req.resume();
    res.end(`${req.method} from ${req.socket.remoteAddress}`);
    return;
  }
  try {
    res.end(await ways[searchParams.get('way')](searchParams.get('url').replace('PORT', process.env.PORT)));
  } catch (error) {
    res.end(error.cause?.code ?? error.code);
  }
});
server.listen(process.env.PORT);
