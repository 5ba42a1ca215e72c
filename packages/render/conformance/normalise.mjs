// Removes from a response what differs between two requests, and keeps everything else, the order of keys included.

/** The frames in pyramid's script that throws in the browser. It has the stack as JSON. */
const FRAMES = /"at (?!YOUR)[^"]*"(?:, "at [^"]*")*/g;
const UUID = /[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/gi;

/**
 * Ids become `id1`, `id2` in the order of their first use. `duration` becomes `ms` (or stays null). Of a stack, the first line
 * stays, and the line of a component that is not registered. Other frames become one `at ...`, because they name files.
 */
export function normalise(answer) {
  const ids = new Map();
  const named = (id) => {
    if (!ids.has(id)) ids.set(id, `id${ids.size + 1}`);
    return ids.get(id);
  };
  const walk = (value, key) => {
    if (key === 'duration' && typeof value === 'number') return 'ms';
    if (key === 'etag') return value.replace(/".*"/, '"..."');
    if (key === 'stack' && Array.isArray(value)) return frames(value);
    if (typeof value === 'string') return value.replace(UUID, named).replace(FRAMES, '"at ..."');
    if (Array.isArray(value)) return value.map((each) => walk(each));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.replace(UUID, named), walk(each, name)]));
  };
  return JSON.stringify(walk(answer), null, 1);
}

function frames(stack) {
  const kept = stack.filter((line, at) => at === 0 || line.includes('YOUR-COMPONENT'));
  const rest = stack.slice(kept.length);
  if (rest.length > 0 && rest.every((line) => /^\s*at /.test(line))) kept.push('at ...');
  return kept;
}
