// Waits until a condition holds, with a deadline and a reason to print.
import { setTimeout as pause } from 'node:timers/promises';

export async function eventually(what, look, context = () => '', deadlineMs = 60_000) {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`not within ${deadlineMs} ms: ${what}\n${context()}`);
    await pause(10);
  }
}
