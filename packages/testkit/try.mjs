import { startHostler, cacheTests } from './index.mjs';
import { writeFileSync } from 'node:fs';
const suite = await cacheTests();
const { command, env } = suite.origin;
const cache = process.argv[2] ?? '"standard"';
const config = `
[pools.origin]
command = ${JSON.stringify(command)}
workers = 1
concurrency = 256
env = { ${Object.entries(env).map(([k, v]) => `${k} = "${v}"`).join(', ')} }
[[routes]]
match = "/test/*"
pool = "origin"
cache = ${cache}
[[routes]]
match = "*"
pool = "origin"
`;
const site = await startHostler({ config });
const out = {};
const only = process.argv[4]?.split(',');
for (const kind of ['required', 'optimal', 'check']) {
  const ids = suite.ids(kind).filter((id) => !only || only.includes(id));
  const r = await suite.run(site.url, ids);
  out[kind] = r;
  const bad = Object.entries(r).filter(([, v]) => v !== true);
  console.log(`${kind}: ${ids.length - bad.length}/${ids.length}`);
  for (const [id, v] of bad) console.log('   ', id, '|', v);
}
writeFileSync(process.argv[3] ?? '/tmp/policy-x/results.json', JSON.stringify(out, null, 1));
await site.stop();
writeFileSync('/tmp/policy-x/site.log', site.log.join('\n'));
