// The commands of the page. Each asks before it is sent, and says what Hostler answered. Knows no figures.
import { at } from './elements.js';
import { command, keepToken } from './stream.js';

const ASKED = {
  restart: (pool) => ['Restart', `New workers take the place of all workers of ${pool}, one after the other. No request is lost.`, `/pools/${encodeURIComponent(pool)}/restart`],
  pause: (pool) => ['Pause', `Requests for ${pool} wait for at most 60 s, or until you resume the pool.`, `/pools/${encodeURIComponent(pool)}/pause?timeout=60s`],
  resume: (pool) => ['Resume', `The waiting requests of ${pool} go on.`, `/pools/${encodeURIComponent(pool)}/resume`],
};

/** Asks, and then sends a command for a pool. */
export async function askPool(what, pool) {
  const [verb, text, path] = ASKED[what](pool);
  await confirm({ title: `${verb} ${pool}?`, text, yes: verb, act: () => command(path) });
}

const ASKED_OF_WORKER = {
  drain: (name) => ['Drain', `${name} gets no more requests until you undrain it, and finishes those that it has. Its process stays.`],
  undrain: (name) => ['Undrain', `${name} gets requests again.`],
};

/** Asks, and then sends a command for a worker. */
export async function askWorker(what, pool, worker) {
  const [verb, text] = ASKED_OF_WORKER[what](`${pool}/${worker}`);
  const path = `/pools/${encodeURIComponent(pool)}/workers/${worker}/${what}`;
  await confirm({ title: `${verb} ${pool}/${worker}?`, text, yes: verb, act: () => command(path) });
}

/** Asks which stored answers go, and then removes them. */
export async function askPurge() {
  const text = 'Hostler removes the stored response of this URL. Leave the field empty to remove all stored responses.';
  const act = (url) => command(`/purge?${url ? `url=${encodeURIComponent(url)}` : 'all=true'}`);
  await confirm({ title: 'Purge the cache?', text, name: 'URL', yes: 'Purge', act });
}

/** Asks for the admin token. `isWrong`: the last one was not it. Resolves to null if the operator gives none. */
export function askToken(isWrong) {
  const text = `${isWrong ? 'The token was wrong. ' : ''}This Hostler has an admin token. The page keeps it until you close this tab.`;
  return confirm({ title: 'Admin token', text, name: 'Token', secret: true, yes: 'Use it', act: null });
}

/** Forgets the token. */
export function forgetToken() {
  keepToken(null);
}

/** Dialogs wait for each other: a command may ask for a token. */
let busy = null;

async function confirm(question) {
  const before = busy;
  const dialog = at('ask');
  if (before) dialog.close();
  busy = question;
  const answer = await shown(dialog, question);
  busy = before;
  before?.show();
  return answer;
}

function present(dialog, { title, text, name, secret, yes }) {
  at('ask-title').textContent = title;
  at('ask-text').textContent = text;
  at('ask-name').textContent = name ?? '';
  at('ask-label').hidden = !name;
  at('ask-input').type = secret ? 'password' : 'text';
  at('ask-input').autocomplete = secret ? 'current-password' : 'off';
  at('ask-input').value = '';
  at('ask-result').textContent = '';
  at('ask-yes').textContent = yes;
  at('ask-yes').hidden = false;
  at('ask-no').textContent = 'Cancel';
  if (!dialog.open) dialog.showModal();
}

function shown(dialog, question) {
  return new Promise((resolve) => {
    const finish = (answer) => {
      dialog.close();
      resolve(answer);
    };
    /** What is known of the command. Empty: it is not sent yet. */
    let told = '';
    const tell = (text) => {
      told = text;
      // The dialog may be closed, or show another question.
      if (busy !== question) return;
      at('ask-yes').hidden = true;
      at('ask-label').hidden = true;
      at('ask-no').textContent = 'Close';
      at('ask-result').textContent = text;
    };
    const agree = async () => {
      if (told) return;
      const typed = at('ask-input').value.trim();
      if (!question.act) return finish(typed || null);
      tell('Hostler works on it.');
      const result = await question.act(typed).catch((error) => ({ text: error.message }));
      tell(result.text);
    };
    // Also after another question, which has had the dialog meanwhile.
    question.show = () => {
      present(dialog, question);
      at('ask-no').onclick = () => finish(null);
      dialog.oncancel = () => resolve(null);
      at('ask-input').onkeydown = (event) => {
        if (event.key !== 'Enter') return;
        // The same key must not press a button of the dialog that is shown next.
        event.preventDefault();
        at('ask-yes').click();
      };
      at('ask-yes').onclick = agree;
      if (told) tell(told);
    };
    question.show();
  });
}
