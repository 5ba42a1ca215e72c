// How long a run of the bench takes, and how it is shortened. Knows the settings of scenarios, not what they measure.

/** The seconds that these runs will take. */
export const planned = (runs) => runs.reduce((sum, { scenario, peers, settings }) => sum + scenario.lasts(settings, peers), 0);

/** Takes a round from the longest part, until all fit into so many seconds or each has one round left. */
export function within(seconds, runs) {
  const shorter = runs.map((run) => ({ ...run, settings: { ...run.settings } }));
  while (planned(shorter) > seconds) {
    const longest = shorter.filter(({ settings }) => settings.rounds > 1).toSorted((one, other) => planned([other]) - planned([one]))[0];
    if (!longest) break;
    longest.settings.rounds -= 1;
  }
  return shorter;
}
