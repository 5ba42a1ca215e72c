// Runs all cases and writes the results into README.md: `node packages/render/conformance/report.mjs`.
import { writeFileSync } from 'node:fs';
import { runAll } from './run.mjs';
import { README_FILE, readme } from './table.mjs';

const results = await runAll();
writeFileSync(README_FILE, readme(results));
if (!results.peers.python) console.warn(`\n!!! pyramid-hypernova was not asked: ${results.peers.why}`);
