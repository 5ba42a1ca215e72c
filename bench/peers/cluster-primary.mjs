// A primary of Node's cluster as the manual shows it: so many workers, the default (round-robin) scheduling.
import cluster from 'node:cluster';
import { resolve } from 'node:path';

const [script, ...args] = process.argv.slice(2);
cluster.setupPrimary({ exec: resolve(script), args });
for (let i = 0; i < Number(process.env.WORKERS); i += 1) cluster.fork();

// A measurement with a worker short would be worthless: end, and the bench will notice.
cluster.on('exit', (worker, code, signal) => {
  console.error(`worker ${worker.process.pid} ended with ${signal ?? code}`);
  process.exit(1);
});
