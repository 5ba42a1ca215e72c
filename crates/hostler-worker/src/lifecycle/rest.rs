//! How long a worker that has died waits before it boots again. Knows no states.

use std::time::Duration;

use super::DeathReport;

/// After this time in the pool, earlier crashes of a worker do not count any more.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// A worker that exits earlier than this and without a request was not really ready: many apps first listen and then find
/// out that their database is missing.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// The longest rest of a worker whose app is known to work. Its boots fail for reasons that may end at any moment.
const LONGEST_REST_IF_PROVEN: Duration = Duration::from_secs(1);
/// The rest of a worker that a restart replaces when a file changes. Longer than a developer works without a change.
pub(crate) const UNTIL_CHANGED: Duration = Duration::from_secs(365 * 24 * 3600);
/// The rest after the first, second ... failed boot in a row.
const RESTS: [Duration; 9] = {
    let ms = Duration::from_millis;
    [ms(0), ms(200), ms(500), ms(1_000), ms(2_000), ms(4_000), ms(8_000), ms(16_000), ms(30_000)]
};

/// Whether the earlier crashes of a worker no longer count after it was ready for this long. `None`: it was never ready.
pub(crate) fn is_forgiven(ready: Option<Duration>) -> bool {
    ready >= Some(STABLE_AFTER)
}

/// Whether a worker that was ready for this long (or never) counts as a failed boot.
pub(super) fn is_failed_boot(ready: Option<Duration>, death: &DeathReport) -> bool {
    match ready {
        None => true,
        Some(ready) => ready < SETTLED_AFTER && !death.served && !death.killed,
    }
}

/// The rest after this many failed boots in a row.
pub(super) fn after(failed_boots: u32, death: &DeathReport, chance: &mut fastrand::Rng) -> Duration {
    let full = failed_boots.checked_sub(1).map_or(Duration::ZERO, |last| {
        let full = RESTS[(RESTS.len() - 1).min(last as usize)];
        if death.killed || death.proven { full.min(LONGEST_REST_IF_PROVEN) } else { full }
    });
    // Workers that crash together must not boot together for ever.
    full.mul_f64(0.8 + 0.2 * chance.f64()).max(death.owed)
}
