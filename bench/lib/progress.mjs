// One line per step, with the time that is left. Knows how many seconds are planned, not what the steps are.

/** `plannedSeconds` covers all steps; the estimate then follows what the steps really take. */
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

/** How many of wrk's errors there were, for whoever watches; nothing if none. */
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
