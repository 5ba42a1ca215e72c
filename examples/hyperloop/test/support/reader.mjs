// A response while it arrives. Knows no page.
import assert from 'node:assert/strict';

/** Reads a response piece by piece. The pieces matter, not their time. */
export function reader(answer) {
  const decoder = new TextDecoder();
  const chunks = answer.body[Symbol.asyncIterator]();
  let text = '';
  const more = async () => {
    const { done, value } = await chunks.next();
    if (!done) text += decoder.decode(value, { stream: true });
    return !done;
  };
  return {
    until: async (mark) => {
      while (!text.includes(mark)) assert.ok(await more(), `the answer ended before ${mark}`);
      return text;
    },
    rest: async () => {
      while (await more());
      return text;
    },
  };
}
