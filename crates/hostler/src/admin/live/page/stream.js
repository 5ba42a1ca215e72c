// The connection to Hostler: the events of the page and its commands, with the admin token where one is set. Knows no figures.

const KEY = 'hostler-admin-token';
const RETRY = 1000;
/** Hostler sends events every second. After this silence the connection is lost, though the system may not notice for hours. */
const SILENCE = 10_000;

/** Asks the operator for the token, with the word that the last one was wrong. Resolves to it, or to null. */
let askForToken = () => Promise.resolve(null);
/** Called when the page has got a token, or will get none. */
let tokenChanged = () => {};
/** The open question for the token. All requests that want one wait for its answer. */
let question = null;
/** The operator has closed the question. Then only a command or the operator opens it again. */
let isDeclined = false;

export function onTokenWanted(ask, changed) {
  [askForToken, tokenChanged] = [ask, changed];
}

const kept = () => sessionStorage.getItem(KEY);

/** The token is kept until the tab is closed. */
export function keepToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

/** `kept`: the page has a token. `wanted`: Hostler wants one, and the operator has given none. */
export function tokenState() {
  return kept() ? 'kept' : isDeclined ? 'wanted' : '';
}

/** Opens the question for the token, if it is not open. One that the page has is wrong. Resolves to the token, or to null. */
export function wantToken() {
  if (!question) {
    const isWrong = kept() !== null;
    keepToken(null);
    question = askForToken(isWrong).then((token) => {
      question = null;
      isDeclined = !token;
      keepToken(token);
      tokenChanged();
      return token;
    });
  }
  return question;
}

function fields(more = {}) {
  const token = kept();
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}

/** Asks Hostler. If it wants a token, asks the operator for one and tries again. `wait` limits the wait for the head of an answer. */
export async function ask(path, { method = 'GET', headers = {}, signal, wait = (answer) => answer } = {}) {
  for (;;) {
    const token = kept();
    const answer = await wait(fetch(path, { method, headers: fields(headers), cache: 'no-store', signal }));
    if (answer.status !== 401) return answer;
    // Another request may have got a token meanwhile.
    if (kept() !== token) continue;
    if (isDeclined && method === 'GET') return answer;
    if (!(await wantToken())) return answer;
  }
}

/** Sends a command and resolves to a sentence about its result. */
export async function command(path) {
  const answer = await ask(path, { method: 'POST', headers: { 'hostler-command': '1' } });
  const text = await answer.text();
  try {
    const { done = [], error } = JSON.parse(text);
    return { ok: answer.ok, text: error ?? (done.join('. ') || 'Done.') };
  } catch {
    // Only answers to accepted commands are JSON.
    return { ok: answer.ok, text: text.trim() || `Hostler answered ${answer.status}.` };
  }
}

/**
 * Reads events while the page is visible, and connects again after a failure. `take(name, data)` gets each event, `show(state)` the
 * state of the connection. `fetch` instead of EventSource, which cannot send a token.
 */
export function follow(path, take, show) {
  let current = null;
  let wasLive = false;
  const connect = async () => {
    const abort = new AbortController();
    current = abort;
    try {
      const answer = await ask(path, { signal: abort.signal, wait: unlessSilent });
      if (!answer.ok) throw new Error(answer.status === 401 ? 'a token is needed' : `Hostler answered ${answer.status}`);
      if (wasLive && (await isReplaced())) return location.reload();
      wasLive = true;
      show('live');
      await read(answer.body, take);
      show('lost');
    } catch (error) {
      if (!abort.signal.aborted) show('lost', error.message);
    }
    if (current === abort) {
      abort.abort();
      current = null;
      if (!document.hidden) setTimeout(() => document.hidden || current || connect(), RETRY);
    }
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      // A page that is not looked at costs nothing.
      current?.abort();
      current = null;
    } else if (!current) connect();
  });
  if (!document.hidden) connect();
}

/** Whether Hostler now has another version of this page: it has this file no longer. After an upgrade the events may be others, too. */
async function isReplaced() {
  const { status } = await unlessSilent(fetch(import.meta.url, { method: 'HEAD', cache: 'no-store' }));
  return status === 404;
}

async function read(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await unlessSilent(reader.read());
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const match = /^event: (\w+)\ndata: (.*)$/s.exec(part);
      if (match) take(match[1], JSON.parse(match[2]));
    }
  }
}

/** Resolves as `awaited` does, and fails if it has not within the silence that the page accepts. */
function unlessSilent(awaited) {
  let timer = 0;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(reject, SILENCE, new Error(`Hostler is silent for ${SILENCE / 1000} s`));
  });
  return Promise.race([awaited, silence]).finally(() => clearTimeout(timer));
}
