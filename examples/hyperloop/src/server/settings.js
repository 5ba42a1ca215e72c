// The environment, read once and checked. A wrong value stops the start with a message that names it.

export function readSettings(env) {
  return {
    port: env.PORT ?? '3000',
    base: checked(env, 'BASE_PATH', '', isPath, 'begin with a slash and end without one, such as /stays'),
    api: checked(env, 'API_URL', 'http://127.0.0.1:8080/api', isAddress, 'be an address, such as http://127.0.0.1:8080/api').replace(/\/$/, ''),
    // In milliseconds. The limit for required data is short, because the page is empty until it comes.
    needsWithin: whole(env, 'API_TIMEOUT', 2_000),
    renderWithin: whole(env, 'RENDER_TIMEOUT', 10_000),
  };
}

function checked(env, name, usual, isRight, rule) {
  const value = env[name] ?? usual;
  if (!isRight(value)) throw new Error(`${name} must ${rule}; it is ${JSON.stringify(value)}`);
  return value;
}

function whole(env, name, usual) {
  return Number(checked(env, name, String(usual), (value) => /^[1-9]\d{0,6}$/.test(value), 'be a number of milliseconds'));
}

function isPath(value) {
  return /^(\/[\w.-]+)*$/.test(value);
}

function isAddress(value) {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}
