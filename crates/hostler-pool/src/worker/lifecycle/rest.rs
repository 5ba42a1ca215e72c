//! How long a worker that has crashed rests before it boots again; knows no states.

use std::time::Duration;

/// A worker that lived so long has forgotten its crashes.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// A worker that served so long, or was killed from outside, is no hopeless case ...
const SERVED_AFTER: Duration = Duration::from_secs(1);
/// ... and the pool needs it: it never rests longer than a queue is patient.
const REST_OF_THE_USEFUL: Duration = Duration::from_secs(1);
/// The rest after the first, second ... crash in a row.
const RESTS: [Duration; 9] = {
    let ms = Duration::from_millis;
    [ms(0), ms(200), ms(500), ms(1_000), ms(2_000), ms(4_000), ms(8_000), ms(16_000), ms(30_000)]
};

/// Whether earlier crashes count no more for one that was ready for so long.
pub(super) fn is_forgiven(served: Option<Duration>) -> bool {
    served >= Some(STABLE_AFTER)
}

/// The rest after one more crash than `crashes`.
pub(super) fn after(
    crashes: u32,
    served: Option<Duration>,
    killed: bool,
    chance: &mut fastrand::Rng,
) -> Duration {
    let full = RESTS[(RESTS.len() - 1).min(crashes as usize)];
    let is_useful = killed || served >= Some(SERVED_AFTER);
    let rest = if is_useful { full.min(REST_OF_THE_USEFUL) } else { full };
    // Workers that crash together must not boot together for ever.
    rest.mul_f64(0.8 + 0.2 * chance.f64())
}
