// Why a target is not met, by part and by the name of the target. RESULTS.md shows a reason only while the target is not met
// or not decided. Knows the names of the targets, no figures.

/** One sentence for each. Remove it when the target is met for good. */
export const reasons = {
};
