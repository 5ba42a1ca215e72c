// A shop with one page that names its machine and process. Knows nothing of the other machines.
import { createServer } from 'node:http';
import { hostname } from 'node:os';

const machine = process.env.MACHINE ?? hostname();
const PRICES = Array.from({ length: 40 }, (_, number) => ({ name: `Lantern no. ${number + 1}`, price: 19 + ((number * 7) % 23) }));

function page() {
  const rows = PRICES.map(({ name, price }) => `<li>${name} <b>${price} €</b></li>`).join('\n');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Lanterns</title>
<style>body { font: 1rem/1.6 system-ui; max-width: 36rem; margin: 3rem auto; padding: 0 1rem } ol { padding-left: 1.5rem } footer { color: #666 }</style>
<h1>Lanterns</h1>
<ol>
${rows}
</ol>
<footer>made by process ${process.pid} on ${machine}</footer>
</html>
`;
}

createServer((request, response) => {
  if (!['GET', 'HEAD'].includes(request.method)) {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'x-made-by': machine }).end(page());
}).listen(process.env.PORT ?? 3000);
