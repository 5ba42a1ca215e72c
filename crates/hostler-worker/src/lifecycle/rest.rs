//! How long a worker that has died rests before it boots again; knows no states.

use std::time::Duration;

use super::DeathReport;

/// A worker that lived so long has forgotten its crashes.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// A worker that ends by itself before that and without a request has not really been ready: many apps listen first and
/// find out then that there is no database.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// The longest rest of what is known to work: its boots fail for reasons that may be over at any moment.
const REST_OF_THE_PROVEN: Duration = Duration::from_secs(1);
/// The rest after the first, second ... failed boot in a row.
const RESTS: [Duration; 9] = {
    let ms = Duration::from_millis;
    [ms(0), ms(200), ms(500), ms(1_000), ms(2_000), ms(4_000), ms(8_000), ms(16_000), ms(30_000)]
};

/// Whether earlier crashes count no more for one that was ready for so long.
pub(super) fn is_forgiven(ready: Option<Duration>) -> bool {
    ready >= Some(STABLE_AFTER)
}

/// Whether one that was ready for so long, if at all, has died of its boot rather than of its work.
pub(super) fn is_failed_boot(ready: Option<Duration>, death: &DeathReport) -> bool {
    match ready {
        None => true,
        Some(ready) => ready < SETTLED_AFTER && !death.served && !death.killed,
    }
}

/// The rest after so many failed boots in a row.
pub(super) fn after(failed_boots: u32, death: &DeathReport, chance: &mut fastrand::Rng) -> Duration {
    let full = failed_boots.checked_sub(1).map_or(Duration::ZERO, |last| {
        let full = RESTS[(RESTS.len() - 1).min(last as usize)];
        if death.killed || death.proven { full.min(REST_OF_THE_PROVEN) } else { full }
    });
    // Workers that crash together must not boot together for ever.
    full.mul_f64(0.8 + 0.2 * chance.f64()).max(death.owed)
}
