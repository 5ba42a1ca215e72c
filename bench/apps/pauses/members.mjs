// Members that sometimes pause: node members.mjs ONE_OF QUICK_MS SLOW_MS SOCKET... answers on each socket after QUICK_MS, and one of so
// many requests, chosen at random, after SLOW_MS. `/count` says how many requests all of them have had.
import { createServer } from 'node:http';

const [oneOf, quick, slow] = process.argv.slice(2, 5).map(Number);
let count = 0;

for (const path of process.argv.slice(5)) {
  createServer((request, response) => {
    if (request.url === '/count') return response.end(String(count));
    count += 1;
    return setTimeout(() => response.end('page'), Math.random() * oneOf < 1 ? slow : quick);
  }).listen(path);
}
