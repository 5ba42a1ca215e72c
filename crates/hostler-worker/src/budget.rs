//! Limits the CPU time of boots that follow deaths: a token bucket in seconds. Pure: the caller passes the time.
//!
//! Each such boot takes its CPU time out of the bucket. The bucket fills with the pool's share of the cores. While it is
//! empty, workers that have died wait. Example: an app that crashes all the time boots as fast as it can for half a
//! minute; after that, its boots never use more than the share.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use hostler_dispatch::json::milliseconds;

/// The bucket holds this many seconds of the share.
const SAVED: f64 = 30.0;
/// The longest wait, for any cost of the boots.
const LONGEST: Duration = Duration::from_secs(30);

/// The CPU budget for the boots of one pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Seconds of CPU that are left. Below 0: boots have used more than they had.
    left: f64,
    at: Instant,
    boots: Boots,
}

/// Deaths, and the cost of boots after them so far. JSON has durations in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Boots {
    /// How many workers have died that Hostler had not asked to end.
    pub deaths: u64,
    /// How many boots there were.
    pub after_deaths: u64,
    /// The CPU time that they have used.
    #[serde(rename = "cpu_ms", serialize_with = "milliseconds")]
    pub cpu: Duration,
    /// How many times a worker had to wait because boots had used up their share.
    pub held_up: u64,
}

impl Budget {
    /// A full bucket. `share` is in seconds of CPU per second.
    pub fn new(share: f64, now: Instant) -> Self {
        Self { left: share * SAVED, at: now, boots: Boots::default() }
    }

    /// A boot has used this much CPU time.
    pub fn take(&mut self, cost: Duration, share: f64, now: Instant) {
        self.fill(share, now);
        self.boots.after_deaths += 1;
        self.boots.cpu += cost;
        self.left = (self.left - cost.as_secs_f64()).max(-share * SAVED);
    }

    /// So many more workers have died.
    pub fn died(&mut self, deaths: u64) {
        self.boots.deaths += deaths;
    }

    /// How long the next boot has to wait.
    pub fn rest(&mut self, share: f64, now: Instant) -> Duration {
        self.fill(share, now);
        if self.left >= 0.0 {
            return Duration::ZERO;
        }
        self.boots.held_up += 1;
        Duration::try_from_secs_f64(-self.left / share).unwrap_or(LONGEST).min(LONGEST)
    }

    pub fn boots(&self) -> Boots {
        self.boots
    }

    fn fill(&mut self, share: f64, now: Instant) {
        let grown = share * now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + grown).min(share * SAVED), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_start_with_a_full_budget_and_then_keep_to_their_share() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut budget = Budget::new(0.5, start);
        let (mut now, mut taken) = (start, Duration::ZERO);
        // A worker that uses 0.2 s of CPU to boot and dies at once, for ten minutes.
        let boot = Duration::from_millis(200);
        while now < start + 600 * second {
            now += budget.rest(0.5, now) + boot;
            budget.take(boot, 0.5, now);
            taken += boot;
        }
        let most = 0.5 * 600.0 + 0.5 * SAVED;
        assert!((most * 0.95..most * 1.05).contains(&taken.as_secs_f64()), "{taken:?}");
        let boots = budget.boots();
        assert_eq!((boots.cpu, boots.after_deaths), (taken, (taken.as_millis() / 200) as u64));
        assert!(boots.held_up > 0 && boots.held_up < boots.after_deaths, "{boots:?}");
        assert_eq!(budget.rest(0.5, now + 600 * second), Duration::ZERO);
        assert_eq!(budget.boots(), boots, "a boot that need not rest is not held up");
    }

    #[test]
    fn one_expensive_boot_delays_the_pool_only_briefly() {
        let now = Instant::now();
        let mut budget = Budget::new(0.5, now);
        budget.take(Duration::from_secs(3600), 0.5, now);
        assert_eq!(budget.rest(0.5, now), LONGEST);
        assert_eq!(budget.rest(0.5, now + LONGEST), Duration::ZERO);
    }
}
