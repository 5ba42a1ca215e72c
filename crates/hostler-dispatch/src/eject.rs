//! How long a member that could not be reached gets nothing; knows no members.

use std::time::Duration;

/// How long a member gets nothing that has ended a request without an answer. If it has died, whoever looks after it knows
/// by then, while its socket may still take connections; if it lives, this is no more than a slow answer, and it ends at once
/// if the member answers another request meanwhile. It does not grow:
/// requests that a member hangs up on must not be a way to eject it for long.
pub(super) const SUSPENSE: Duration = Duration::from_millis(50);

/// Back-off for members that could not be reached: doubles with each failure in a row, jittered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffSettings {
    /// The first back-off.
    pub min: Duration,
    /// The longest one.
    pub max: Duration,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self { min: Duration::from_millis(100), max: Duration::from_secs(5) }
    }
}

/// Whether and for how long a member is taken out that lets requests wait in vain: longer with each time in a row, jittered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectSettings {
    /// Requests in a row without an answer in time, or as many as a member has slots if those are fewer; 0: it is never taken out.
    pub failures: u32,
    /// For how long the first time.
    pub min: Duration,
    /// The longest time.
    pub max: Duration,
    /// How many of a hundred members may be out at a time; at least one always stays.
    pub share: u32,
}

impl Default for EjectSettings {
    fn default() -> Self {
        Self { failures: 5, min: Duration::from_secs(10), max: Duration::from_secs(300), share: 50 }
    }
}

impl EjectSettings {
    /// For how long a member is out for the so many-th time in a row (at least one).
    pub(super) fn after(&self, ejections: u32) -> Duration {
        BackoffSettings { min: self.min, max: self.max }.after(ejections)
    }

    /// Whether one of so many members may be taken out beside those that are out.
    pub(super) fn allows(&self, members: usize, others_out: usize) -> bool {
        let most = (members * self.share as usize / 100).min(members.saturating_sub(1));
        others_out < most
    }
}

impl BackoffSettings {
    /// The back-off after so many failures in a row (at least one).
    pub(super) fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.min.saturating_mul(1 << doublings).min(self.max);
        // Members that failed together must not all come back in the same instant.
        full.mul_f64(0.8 + 0.2 * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_a_share_is_out_and_somebody_always_stays() {
        let eject = EjectSettings::default();
        let most =
            |settings: EjectSettings, members| (0..=members).find(|out| !settings.allows(members, *out));
        assert_eq!([1, 2, 3, 10].map(|members| most(eject, members)), [0, 1, 1, 5].map(Some));
        let all = EjectSettings { share: 100, ..eject };
        assert_eq!([1, 2, 3].map(|members| most(all, members)), [0, 1, 2].map(Some));
    }

    #[test]
    fn the_bench_doubles_up_to_its_maximum() {
        let backoff = BackoffSettings::default();
        for (failures, full) in [(1, 100), (2, 200), (3, 400), (6, 3200), (7, 5000), (u32::MAX, 5000)] {
            let time = backoff.after(failures).as_millis();
            assert!(
                (full * 8 / 10..=full).contains(&time),
                "{failures} failures: {time} ms, not about {full}"
            );
        }
    }
}
