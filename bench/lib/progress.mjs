// Prints one line per step, with the remaining time. Knows how many seconds are planned, not what the steps are.

/** `plannedSeconds` covers all steps. The estimate then follows the real time of the steps. */
export function createProgress({ steps, plannedSeconds, print = (line) => process.stderr.write(`${line}\n`), now = () => performance.now() }) {
  const began = now();
  let done = 0;
  const width = String(steps).length;
  return {
    begin: (title) => print(`${title}: ${steps} steps, about ${duration(plannedSeconds)}`),
    step(text) {
      done += 1;
      const left = ((now() - began) / 1000 / done) * (steps - done);
      print(`[${String(done).padStart(width)}/${steps}] ${text}${done < steps ? `   (${duration(left)} left)` : ''}`);
    },
  };
}

/** The number of wrk's errors as text. Empty if there were none. */
export function errorsTold(...errors) {
  const count = errors.flatMap(Object.values).reduce((sum, one) => sum + one, 0);
  return count > 0 ? `, ${count} ERRORS` : '';
}

export function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
