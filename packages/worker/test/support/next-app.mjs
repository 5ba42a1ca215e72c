// A real Next.js app, built once into .cache. Run as a program, it prints the path. Knows no test.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../apps/next/', import.meta.url));

export const folder = fileURLToPath(new URL('../.cache/next/', import.meta.url));
export const next = createRequire(import.meta.url).resolve('next/dist/bin/next');

/** A build takes a while, so it is kept until the app or Next.js changes. */
export function buildOnce() {
  const hash = createHash('sha256').update(fs.readFileSync(path.join(path.dirname(next), '../../package.json')));
  for (const file of fs.readdirSync(source, { recursive: true }).sort()) {
    if (fs.statSync(path.join(source, file)).isFile()) hash.update(file).update(fs.readFileSync(path.join(source, file)));
  }
  const stamp = path.join(folder, 'built-from');
  const key = hash.digest('hex');
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === key) return;

  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(source, folder, { recursive: true });
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' };
  delete env.NODE_TEST_CONTEXT;
  execFileSync(process.execPath, [next, 'build'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  fs.writeFileSync(stamp, key);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  buildOnce();
  console.log(folder);
}
