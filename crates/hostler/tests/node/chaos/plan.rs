//! The seed and the end of a run of the chaos test. Knows nothing of its content.

use std::time::Duration;

use tokio::time::Instant;

/// Long enough for every kind of fault many times, and short enough for a normal test run.
const IN_THE_SUITE: Duration = Duration::from_secs(60);

/// A run. `HOSTLER_CHAOS_SEED` repeats a run's schedule, `HOSTLER_CHAOS_SECONDS` makes it longer, `HOSTLER_CHAOS_ROUNDS=200` ends it
/// after this many rounds of deploys and kills instead.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub end: End,
}

#[derive(Clone, Copy, Debug)]
pub enum End {
    After(Duration),
    AfterRounds(usize),
}

impl Plan {
    pub fn from_environment() -> Self {
        let end = match (number("HOSTLER_CHAOS_ROUNDS"), number("HOSTLER_CHAOS_SECONDS")) {
            (Some(rounds), _) => End::AfterRounds(rounds as usize),
            (None, Some(seconds)) => End::After(Duration::from_secs(seconds)),
            (None, None) => End::After(IN_THE_SUITE),
        };
        let seed = number("HOSTLER_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
        Self { seed, end }
    }

    /// A random number generator for this user of this run.
    pub fn chance(&self, user: u64) -> fastrand::Rng {
        chance(self.seed, user)
    }

    pub fn is_over(&self, began: Instant, rounds: usize) -> bool {
        match self.end {
            End::After(time) => began.elapsed() >= time,
            End::AfterRounds(wanted) => rounds >= wanted,
        }
    }
}

/// A random number generator for this user of the run with this seed.
pub fn chance(seed: u64, user: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(user))
}

/// A setting of the run, from the environment.
#[expect(clippy::disallowed_methods, reason = "how long a test runs is no configuration of Hostler's")]
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a whole number")))
}
