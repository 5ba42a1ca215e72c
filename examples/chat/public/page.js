// Parts of the page that several files need: elements by id, the end of the conversation, the state line. Knows no
// conversation.

const NEAR = 80; // px from the end: within this distance the page scrolls to new messages

export const at = (id) => document.getElementById(id);

export function setState(state, text) {
  at('state').dataset.state = state;
  if (at('state-text').textContent !== text) at('state-text').textContent = text; // screen readers announce it once, not at each attempt
}

export function isAtEnd() {
  const { scrollHeight, scrollTop, clientHeight } = at('scroll');
  return scrollHeight - scrollTop - clientHeight < NEAR;
}

export function toEnd() {
  at('scroll').scrollTop = at('scroll').scrollHeight;
}

/** Whether the newest message is visible. */
export function isHere() {
  return document.visibilityState === 'visible' && isAtEnd();
}
