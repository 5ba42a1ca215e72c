//! How long a member that failed gets no requests. Knows no members.

use std::time::Duration;

use tokio::time::Instant;

/// How long a member gets no requests after it ended one without an answer, if it may be about to die.
///
/// If the member has died, its supervisor notices within this time, while its socket may still accept connections. If the member lives, the
/// time ends at once when it responds to another request, or when its main thread waits for events. The time does not grow with each case.
/// Otherwise requests on which a member hangs up could keep it out for long.
pub(super) const SUSPENSE: Duration = Duration::from_millis(50);

/// How often in a row [`SUSPENSE`] ends early because the main thread of the member waits for events, or does not begin because the member
/// probably lives. A member that ends all requests at once, such as a process without free file descriptors, is always free. Without this
/// limit it would take most requests from the members that respond.
pub(super) const MOST_FORGIVEN: u32 = 16;

/// How often in a row a member has ended requests without an answer. Those that it ends together count once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HangUps {
    pub count: u32,
    /// When the last one was counted that left the member its requests.
    pub last: Option<Instant>,
}

/// Back-off for members that could not be reached. It doubles with each failure in a row and has a random part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffSettings {
    /// The first back-off.
    pub min: Duration,
    /// The longest back-off.
    pub max: Duration,
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self { min: Duration::from_millis(100), max: Duration::from_secs(5) }
    }
}

/// Whether and for how long a member is ejected when requests time out on it. The time grows with each ejection in a row
/// and has a random part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectSettings {
    /// This many timeouts in a row eject a member, or as many as the member has slots if that is less. 0: a member is
    /// never ejected for timeouts.
    pub failures: u32,
    /// How long the first ejection lasts.
    pub min: Duration,
    /// How long an ejection lasts at most.
    pub max: Duration,
    /// Percentage of members that may be ejected at the same time. At least one member always stays.
    pub share: u32,
}

impl Default for EjectSettings {
    fn default() -> Self {
        Self { failures: 5, min: Duration::from_secs(10), max: Duration::from_secs(300), share: 50 }
    }
}

impl EjectSettings {
    /// How long the ejection number `ejections` in a row lasts (at least 1).
    pub(super) fn after(&self, ejections: u32) -> Duration {
        BackoffSettings { min: self.min, max: self.max }.after(ejections)
    }

    /// Whether a pool with `members` members may eject one more while `others_out` are ejected.
    pub(super) fn allows(&self, members: usize, others_out: usize) -> bool {
        let most = (members * self.share as usize / 100).min(members.saturating_sub(1));
        others_out < most
    }
}

impl BackoffSettings {
    /// The back-off after this many failures in a row (at least 1).
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
    fn at_most_a_share_is_ejected_and_one_member_always_stays() {
        let eject = EjectSettings::default();
        let most =
            |settings: EjectSettings, members| (0..=members).find(|out| !settings.allows(members, *out));
        assert_eq!([1, 2, 3, 10].map(|members| most(eject, members)), [0, 1, 1, 5].map(Some));
        let all = EjectSettings { share: 100, ..eject };
        assert_eq!([1, 2, 3].map(|members| most(all, members)), [0, 1, 2].map(Some));
    }

    #[test]
    fn the_ejection_time_doubles_up_to_its_maximum() {
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
