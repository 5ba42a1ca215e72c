// The field for a new message. Does not know where a message goes.
import { at } from './page.js';

const REMIND = 2_000; // ms between two signals that the person types
const WARN_BELOW = 200;

/** `on`: { send(text), types() }. */
export function wireComposer(on) {
  const field = at('text');
  let hinted = -Infinity;

  const fit = () => {
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight}px`;
    const left = field.maxLength - field.value.length;
    at('left').textContent = left < WARN_BELOW ? `${left} characters left` : '';
    at('send').disabled = field.value.trim() === '';
  };

  field.addEventListener('input', () => {
    fit();
    if (field.value.trim() === '' || performance.now() - hinted < REMIND) return;
    hinted = performance.now();
    on.types();
  });
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    at('composer').requestSubmit();
  });
  at('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (text === '') return;
    on.send(text);
    field.value = '';
    hinted = -Infinity;
    fit();
    field.focus();
  });
  fit();
}
