// A primary of Node's cluster as in the manual, with the default (round-robin) scheduling.
import cluster from 'node:cluster';
import { resolve } from 'node:path';

const [script, ...args] = process.argv.slice(2);
cluster.setupPrimary({ exec: resolve(script), args });
for (let i = 0; i < Number(process.env.WORKERS); i += 1) cluster.fork();

// A measurement with a missing worker would be useless, so the process ends, and the bench notices.
cluster.on('exit', (worker, code, signal) => {
  console.error(`worker ${worker.process.pid} ended with ${signal ?? code}`);
  process.exit(1);
});
