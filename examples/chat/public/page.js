// The parts of the page that everybody needs: elements by id, the end of the conversation, the state line. Knows no conversation.

const NEAR = 80; // px from the end: whoever is there sees what comes

export const at = (id) => document.getElementById(id);

export function setState(state, text) {
  at('state').dataset.state = state;
  if (at('state-text').textContent !== text) at('state-text').textContent = text; // said aloud once, not at each try
}

export function isAtEnd() {
  const { scrollHeight, scrollTop, clientHeight } = at('scroll');
  return scrollHeight - scrollTop - clientHeight < NEAR;
}

export function toEnd() {
  at('scroll').scrollTop = at('scroll').scrollHeight;
}

/** Somebody looks at the newest message. */
export function isHere() {
  return document.visibilityState === 'visible' && isAtEnd();
}
