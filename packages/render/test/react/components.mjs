// Components for every React from 16 on. They do not know where they are rendered.
import * as React from 'react';

const { createElement, Suspense, useState } = React;
/** React 16 and 17 do not have useId. The computed name keeps bundlers from requiring it. */
const useId = React['useId'.slice()] ?? (() => undefined);

export function Counter({ label }) {
  const id = useId();
  const [clicks, click] = useState(0);
  return createElement(
    'section',
    null,
    createElement('label', { htmlFor: id }, label),
    createElement('input', { id, defaultValue: label }),
    createElement('button', { onClick: () => click(clicks + 1) }, 'clicked ', clicks, ' times'),
  );
}

export function Throws() {
  throw new Error('this component always throws');
}

/** Throws inside a boundary. */
export function Torn() {
  return createElement(Suspense, { fallback: createElement('i', null, 'wait') }, createElement(Throws));
}

const answers = new Map();

/** Suspends for `ms`, or for ever. */
function read(key, ms, never) {
  if (!answers.has(key)) {
    const wait = new Promise((resolve) => never || setTimeout(resolve, ms));
    const answer = { promise: wait.then(() => (answer.ready = true)) };
    answers.set(key, answer);
  }
  const answer = answers.get(key);
  if (!answer.ready) throw answer.promise;
  return key;
}

function Late({ text, ms, never, times = 1 }) {
  read(text, ms, never);
  return createElement('p', { id: useId() }, text.repeat(times));
}

export function Patient(props) {
  return createElement('div', null, createElement(Suspense, { fallback: createElement('i', null, 'wait') }, createElement(Late, props)), createElement(Counter, { label: props.text }));
}

/** Suspends without a boundary around it. */
export function Frameless(props) {
  return createElement(Late, props);
}
