// Runs ApacheBench once and parses its figures. Knows ab, not the server under test.

/** Sends this many requests, `connections` at once, each on a new connection. */
export async function ab(session, { port, path, requests, connections, cpu }) {
  return parseAb(await session.run('ab', ['-q', '-r', '-n', String(requests), '-c', String(connections), `http://127.0.0.1:${port}${path}`], { cpu, name: 'ab' }));
}

export function parseAb(text) {
  const number = (pattern) => (pattern.test(text) ? Number(pattern.exec(text)[1]) : undefined);
  const complete = number(/^Complete requests:\s+(\d+)/m);
  if (complete === undefined) throw new Error(`ab printed no figures:\n${text}`);
  return {
    requests: complete,
    rate: number(/^Requests per second:\s+([\d.]+)/m),
    failed: number(/^Failed requests:\s+(\d+)/m) + (number(/^Non-2xx responses:\s+(\d+)/m) ?? 0),
    p50_ms: number(/^\s+50%\s+(\d+)/m),
    p99_ms: number(/^\s+99%\s+(\d+)/m),
    longest_ms: number(/^\s*100%\s+(\d+)/m),
  };
}
